package sim

import (
	"math"
	"math/bits"
)

// two makes an instruction of two registers, three one of three: the first is the result.
func two(name string, f func(s uint32) uint32) spec {
	return instruction(name, "a> a<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = f(m.a[o.r[1]]) })
}

func three(name string, f func(s, t uint32) uint32) spec {
	return instruction(name, "a> a< a<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = f(m.a[o.r[1]], m.a[o.r[2]]) })
}

// multiplied is the same with a result that comes a cycle later.
func multiplied(name string, f func(s, t uint32) uint32) spec {
	return instruction(name, "a>2 a< a<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = f(m.a[o.r[1]], m.a[o.r[2]]) })
}

// divided: a division takes its time, and traps where it has no result.
func divided(name string, f func(s, t uint32) uint32) spec {
	return instruction(name, "a>9 a< a<", 3, func(m *Machine, o *op) {
		if m.a[o.r[2]] == 0 {
			m.fail("divides by zero")
			return
		}
		m.a[o.r[0]] = f(m.a[o.r[1]], m.a[o.r[2]])
	})
}

func short(s spec, name string) spec {
	s.name, s.size = name, 2
	return s
}

// baseSpecs are the instructions of the processor without extensions.
func baseSpecs() []spec {
	var all []spec
	for _, group := range [][]spec{words32(), shifts(), memory(), branches(), calls()} {
		all = append(all, group...)
	}
	return all
}

func words32() []spec {
	add := three("add", func(s, t uint32) uint32 { return s + t })
	move := two("mov", func(s uint32) uint32 { return s })
	addi := instruction("addi", "a> a< i:-128:127:1", 3, func(m *Machine, o *op) { m.a[o.r[0]] = m.a[o.r[1]] + uint32(o.imm) })
	put := func(m *Machine, o *op) { m.a[o.r[0]] = uint32(o.imm) }
	none := func(*Machine, *op) {}
	all := []spec{
		add, short(add, "add.n"), move, short(move, "mov.n"), addi,
		instruction("addi.n", "a> a< n15", 2, addi.run),
		instruction("addmi", "a> a< i:-32768:32512:256", 3, addi.run),
		instruction("movi", "a> i:-2048:2047:1", 3, put),
		instruction("movi.n", "a> i:-32:95:1", 2, put),
		instruction("nop", "", 3, none), instruction("nop.n", "", 2, none),
		instruction("l32r", "a>2 literal", 3, func(m *Machine, o *op) { m.a[o.r[0]] = m.p.literals[o.target] }),
		three("sub", func(s, t uint32) uint32 { return s - t }),
		three("and", func(s, t uint32) uint32 { return s & t }),
		three("or", func(s, t uint32) uint32 { return s | t }),
		three("xor", func(s, t uint32) uint32 { return s ^ t }),
		two("neg", func(s uint32) uint32 { return -s }),
		two("abs", func(s uint32) uint32 {
			if int32(s) < 0 {
				return -s
			}
			return s
		}),
		three("min", func(s, t uint32) uint32 { return uint32(min(int32(s), int32(t))) }),
		three("max", func(s, t uint32) uint32 { return uint32(max(int32(s), int32(t))) }),
		three("minu", func(s, t uint32) uint32 { return min(s, t) }),
		three("maxu", func(s, t uint32) uint32 { return max(s, t) }),
		two("nsau", func(s uint32) uint32 { return uint32(bits.LeadingZeros32(s)) }),
		two("nsa", func(s uint32) uint32 {
			if int32(s) < 0 {
				s = ^s
			}
			return uint32(bits.LeadingZeros32(s)) - 1
		}),
		multiplied("mull", func(s, t uint32) uint32 { return s * t }),
		multiplied("mul16s", func(s, t uint32) uint32 { return uint32(int32(int16(s)) * int32(int16(t))) }),
		multiplied("mul16u", func(s, t uint32) uint32 { return s & 0xffff * (t & 0xffff) }),
		multiplied("muluh", func(s, t uint32) uint32 { return uint32(uint64(s) * uint64(t) >> 32) }),
		multiplied("mulsh", func(s, t uint32) uint32 { return uint32(int64(int32(s)) * int64(int32(t)) >> 32) }),
		divided("quou", func(s, t uint32) uint32 { return s / t }),
		divided("remu", func(s, t uint32) uint32 { return s % t }),
		divided("quos", func(s, t uint32) uint32 {
			if t == math.MaxUint32 {
				return -s
			}
			return uint32(int32(s) / int32(t))
		}),
		divided("rems", func(s, t uint32) uint32 {
			if t == math.MaxUint32 {
				return 0
			}
			return uint32(int32(s) % int32(t))
		}),
		instruction("clamps", "a> a< i:7:22:1", 3, func(m *Machine, o *op) {
			m.a[o.r[0]] = uint32(clamp(int64(int32(m.a[o.r[1]])), -1<<o.imm, 1<<o.imm-1))
		}),
		instruction("sext", "a> a< i:7:22:1", 3, func(m *Machine, o *op) {
			m.a[o.r[0]] = uint32(int32(m.a[o.r[1]]<<(31-o.imm)) >> (31 - o.imm))
		}),
	}
	for n, k := range map[string]int{"2": 1, "4": 2, "8": 3} {
		all = append(all,
			three("addx"+n, func(s, t uint32) uint32 { return s<<k + t }),
			three("subx"+n, func(s, t uint32) uint32 { return s<<k - t }))
	}
	for name, holds := range map[string]func(t uint32) bool{
		"eqz": func(t uint32) bool { return t == 0 }, "nez": func(t uint32) bool { return t != 0 },
		"ltz": func(t uint32) bool { return int32(t) < 0 }, "gez": func(t uint32) bool { return int32(t) >= 0 },
	} {
		all = append(all, instruction("mov"+name, "a<> a< a<", 3, func(m *Machine, o *op) {
			if holds(m.a[o.r[2]]) {
				m.a[o.r[0]] = m.a[o.r[1]]
			}
		}))
	}
	for name, want := range map[string]uint16{"movt": 1, "movf": 0} {
		all = append(all, instruction(name, "a<> a< b<", 3, func(m *Machine, o *op) {
			if m.b>>o.r[2]&1 == want {
				m.a[o.r[0]] = m.a[o.r[1]]
			}
		}))
	}
	return all
}

func shifts() []spec {
	setSar := func(name string, f func(s uint32) uint32) spec {
		return instruction(name, "a< sar>", 3, func(m *Machine, o *op) { m.sar = f(m.a[o.r[0]]) })
	}
	return []spec{
		instruction("slli", "a> a< i:1:31:1", 3, func(m *Machine, o *op) { m.a[o.r[0]] = m.a[o.r[1]] << o.imm }),
		instruction("srli", "a> a< i:0:15:1", 3, func(m *Machine, o *op) { m.a[o.r[0]] = m.a[o.r[1]] >> o.imm }),
		instruction("srai", "a> a< i:0:31:1", 3, func(m *Machine, o *op) { m.a[o.r[0]] = uint32(int32(m.a[o.r[1]]) >> o.imm) }),
		instruction("extui", "a> a< i:0:31:1 i:1:16:1", 3, func(m *Machine, o *op) {
			m.a[o.r[0]] = m.a[o.r[1]] >> o.imm & (1<<o.second - 1)
		}),
		instruction("sll", "a> a< sar<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = uint32(uint64(m.a[o.r[1]]) << 32 >> m.sar) }),
		instruction("srl", "a> a< sar<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = uint32(uint64(m.a[o.r[1]]) >> m.sar) }),
		instruction("sra", "a> a< sar<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = uint32(int64(int32(m.a[o.r[1]])) >> m.sar) }),
		instruction("src", "a> a< a< sar<", 3, func(m *Machine, o *op) {
			m.a[o.r[0]] = uint32((uint64(m.a[o.r[1]])<<32 | uint64(m.a[o.r[2]])) >> m.sar)
		}),
		instruction("ssai", "i:0:31:1 sar>", 3, func(m *Machine, o *op) { m.sar = uint32(o.imm) }),
		setSar("ssl", func(s uint32) uint32 { return 32 - s&31 }),
		setSar("ssr", func(s uint32) uint32 { return s & 31 }),
		setSar("ssa8l", func(s uint32) uint32 { return s & 3 * 8 }),
		setSar("wsr.sar", func(s uint32) uint32 { return s & 63 }),
		instruction("rsr.sar", "a> sar<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = m.sar }),
	}
}

// aligned is the address of an access that must be a multiple of its size.
func (m *Machine) aligned(address, n uint32) bool {
	if address%n == 0 {
		return true
	}
	m.fail("the address %#08x is not a multiple of %d", address, n)
	return false
}

func memory() []spec {
	var all []spec
	for _, l := range []struct {
		name, ranges string
		n            uint32
		size         uint8
		extend       func(v uint64) uint32
	}{
		{"l8ui", "0:255:1", 1, 3, func(v uint64) uint32 { return uint32(v) }},
		{"l16ui", "0:510:2", 2, 3, func(v uint64) uint32 { return uint32(v) }},
		{"l16si", "0:510:2", 2, 3, func(v uint64) uint32 { return uint32(int16(v)) }},
		{"l32i", "0:1020:4", 4, 3, func(v uint64) uint32 { return uint32(v) }},
		{"l32i.n", "0:60:4", 4, 2, func(v uint64) uint32 { return uint32(v) }},
	} {
		all = append(all, instruction(l.name, "a>2 a< i:"+l.ranges, l.size, func(m *Machine, o *op) {
			if at := m.a[o.r[1]] + uint32(o.imm); m.aligned(at, l.n) {
				m.a[o.r[0]] = l.extend(m.load(at, l.n))
			}
		}))
	}
	for _, s := range []struct {
		name, ranges string
		n            uint32
		size         uint8
	}{{"s8i", "0:255:1", 1, 3}, {"s16i", "0:510:2", 2, 3}, {"s32i", "0:1020:4", 4, 3}, {"s32i.n", "0:60:4", 4, 2}} {
		all = append(all, instruction(s.name, "a< a< i:"+s.ranges, s.size, func(m *Machine, o *op) {
			if at := m.a[o.r[1]] + uint32(o.imm); m.aligned(at, s.n) {
				m.store(at, s.n, uint64(m.a[o.r[0]]))
			}
		}))
	}
	return all
}

func branches() []spec {
	var all []spec
	for name, holds := range map[string]func(s, t uint32) bool{
		"eq":   func(s, t uint32) bool { return s == t },
		"ne":   func(s, t uint32) bool { return s != t },
		"lt":   func(s, t uint32) bool { return int32(s) < int32(t) },
		"ge":   func(s, t uint32) bool { return int32(s) >= int32(t) },
		"ltu":  func(s, t uint32) bool { return s < t },
		"geu":  func(s, t uint32) bool { return s >= t },
		"any":  func(s, t uint32) bool { return s&t != 0 },
		"none": func(s, t uint32) bool { return s&t == 0 },
		"all":  func(s, t uint32) bool { return s&t == t },
		"nall": func(s, t uint32) bool { return s&t != t },
		"bc":   func(s, t uint32) bool { return s>>(t&31)&1 == 0 },
		"bs":   func(s, t uint32) bool { return s>>(t&31)&1 == 1 },
	} {
		all = append(all, instruction("b"+name, "a< a< to8", 3, func(m *Machine, o *op) {
			if holds(m.a[o.r[0]], m.a[o.r[1]]) {
				m.jump(o.target)
			}
		}))
		with := func(name, form string) {
			all = append(all, instruction("b"+name, form, 3, func(m *Machine, o *op) {
				if holds(m.a[o.r[0]], uint32(o.imm)) {
					m.jump(o.target)
				}
			}))
		}
		zero := func(name, form string, size uint8) {
			all = append(all, instruction("b"+name, form, size, func(m *Machine, o *op) {
				if holds(m.a[o.r[0]], 0) {
					m.jump(o.target)
				}
			}))
		}
		switch name {
		case "eq", "ne":
			zero(name+"z.n", "a< to6", 2)
			fallthrough
		case "lt", "ge":
			zero(name+"z", "a< to12", 3)
			with(name+"i", "a< b4 to8")
		case "ltu", "geu":
			with(name[:2]+"ui", "a< b4u to8")
		case "bc", "bs":
			with(name+"i", "a< i:0:31:1 to8")
		}
	}
	for name, want := range map[string]uint16{"bt": 1, "bf": 0} {
		all = append(all, instruction(name, "b< to8", 3, func(m *Machine, o *op) {
			if m.b>>o.r[0]&1 == want {
				m.jump(o.target)
			}
		}))
	}
	return append(all,
		instruction("j", "to18", 3, func(m *Machine, o *op) { m.jump(o.target) }),
		instruction("jx", "a<", 3, func(m *Machine, o *op) { m.jump(m.codeAt(m.a[o.r[0]])) }),
		instruction("loop", "a< loop", 3, func(m *Machine, o *op) { m.startLoop(o, m.a[o.r[0]], false) }),
		instruction("loopnez", "a< loop", 3, func(m *Machine, o *op) { m.startLoop(o, m.a[o.r[0]], m.a[o.r[0]] == 0) }),
		instruction("loopgtz", "a< loop", 3, func(m *Machine, o *op) {
			m.startLoop(o, m.a[o.r[0]], int32(m.a[o.r[0]]) <= 0)
		}))
}

func calls() []spec {
	ret := func(name string, size uint8) spec { return instruction(name, "", size, runRet) }
	retw := func(name string, size uint8) spec { return instruction(name, "", size, runRetw) }
	return []spec{
		instruction("entry", "a<> i:16:32752:16", 3, runEntry),
		ret("ret", 3), ret("ret.n", 2), retw("retw", 3), retw("retw.n", 2),
		instruction("call0", "call", 3, runCall0),
		instruction("callx0", "a<", 3, func(m *Machine, o *op) { m.call0(m.codeAt(m.a[o.r[0]])) }),
		instruction("call8", "call", 3, runCall8),
		instruction("callx8", "a<", 3, func(m *Machine, o *op) { m.call8(m.codeAt(m.a[o.r[0]])) }),
	}
}
