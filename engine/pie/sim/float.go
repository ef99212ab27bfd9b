package sim

import "math"

// quietNaN is the result of an invalid operation. The first operand that is no number passes through, quiet.
const quietNaN = 0x7fc00000

// result gives the bits of a result whose operands are known.
func result(r float32, operands ...uint32) uint32 {
	if r == r {
		return math.Float32bits(r)
	}
	for _, o := range operands {
		if o&0x7fffffff > 0x7f800000 {
			return o | 0x400000
		}
	}
	return quietNaN
}

// fused is z + x*y, rounded once. The product is exact in 53 bits; the sum is rounded to odd there, after which
// rounding to 24 bits is as if there had been no rounding before.
func fused(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	if math.IsInf(s, 0) || s != s {
		return float32(s)
	}
	b := s - p
	rest := float64(p-float64(s-b)) + float64(c-b)
	if rest != 0 {
		if b := math.Float64bits(s); b&1 == 0 {
			if (rest > 0) == (s > 0) {
				b++
			} else {
				b--
			}
			s = math.Float64frombits(b)
		}
	}
	return float32(s)
}

// toInteger multiplies by 2^scale, rounds and saturates. What is no number is the largest.
func toInteger(v uint32, scale int32, round func(float64) float64, lo, hi float64) int64 {
	x := float64(math.Float32frombits(v))
	if x != x {
		return int64(hi)
	}
	return int64(max(lo, min(hi, round(math.Ldexp(x, int(scale))))))
}

func floatSpecs() []spec {
	number := func(m *Machine, r uint8) float32 { return math.Float32frombits(m.f[r]) }
	binary := func(name string, f func(x, y float32) float32) spec {
		return instruction(name, "f>4 f< f<", 3, func(m *Machine, o *op) {
			m.f[o.r[0]] = result(f(number(m, o.r[1]), number(m, o.r[2])), m.f[o.r[1]], m.f[o.r[2]])
		})
	}
	accumulate := func(name string, sign uint32) spec {
		return instruction(name, "f<>4 f< f<", 3, func(m *Machine, o *op) {
			z, x, y := m.f[o.r[0]], m.f[o.r[1]], m.f[o.r[2]]
			r := fused(math.Float32frombits(x^sign), math.Float32frombits(y), math.Float32frombits(z))
			m.f[o.r[0]] = result(r, z, x, y)
		})
	}
	unary := func(name string, f func(v uint32) uint32) spec {
		return instruction(name, "f> f<", 3, func(m *Machine, o *op) { m.f[o.r[0]] = f(m.f[o.r[1]]) })
	}
	// An integer divided by 2^scale.
	fromInteger := func(name string, f func(v uint32) float64) spec {
		return instruction(name, "f>2 a< i:0:15:1", 3, func(m *Machine, o *op) {
			m.f[o.r[0]] = math.Float32bits(float32(math.Ldexp(f(m.a[o.r[1]]), -int(o.imm))))
		})
	}
	integer := func(name string, round func(float64) float64) spec {
		return instruction(name, "a>2 f< i:0:15:1", 3, func(m *Machine, o *op) {
			m.a[o.r[0]] = uint32(toInteger(m.f[o.r[1]], o.imm, round, math.MinInt32, math.MaxInt32))
		})
	}
	all := []spec{
		binary("add.s", func(x, y float32) float32 { return x + y }),
		binary("sub.s", func(x, y float32) float32 { return x - y }),
		binary("mul.s", func(x, y float32) float32 { return x * y }),
		accumulate("madd.s", 0), accumulate("msub.s", 1<<31),
		unary("mov.s", func(v uint32) uint32 { return v }),
		unary("neg.s", func(v uint32) uint32 { return v ^ 1<<31 }),
		unary("abs.s", func(v uint32) uint32 { return v &^ (1 << 31) }),
		fromInteger("float.s", func(v uint32) float64 { return float64(int32(v)) }),
		fromInteger("ufloat.s", func(v uint32) float64 { return float64(v) }),
		integer("round.s", math.RoundToEven), integer("trunc.s", math.Trunc),
		integer("floor.s", math.Floor), integer("ceil.s", math.Ceil),
		instruction("utrunc.s", "a>2 f< i:0:15:1", 3, func(m *Machine, o *op) {
			m.a[o.r[0]] = uint32(toInteger(m.f[o.r[1]], o.imm, math.Trunc, math.MinInt32, math.MaxUint32))
		}),
		instruction("wfr", "f>2 a<", 3, func(m *Machine, o *op) { m.f[o.r[0]] = m.a[o.r[1]] }),
		instruction("rfr", "a>2 f<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = m.f[o.r[1]] }),
		instruction("const.s", "f> i:0:3:1", 3, func(m *Machine, o *op) {
			m.f[o.r[0]] = math.Float32bits([]float32{0, 1, 2, 0.5}[o.imm])
		}),
	}
	all = append(all, floatMemory()...)
	for name, holds := range map[string]func(x, y float32, apart bool) bool{
		"un.s":  func(_, _ float32, apart bool) bool { return apart },
		"oeq.s": func(x, y float32, _ bool) bool { return x == y },
		"ueq.s": func(x, y float32, apart bool) bool { return x == y || apart },
		"olt.s": func(x, y float32, _ bool) bool { return x < y },
		"ult.s": func(x, y float32, apart bool) bool { return x < y || apart },
		"ole.s": func(x, y float32, _ bool) bool { return x <= y },
		"ule.s": func(x, y float32, apart bool) bool { return x <= y || apart },
	} {
		all = append(all, instruction(name, "b>2 f< f<", 3, func(m *Machine, o *op) {
			x, y := number(m, o.r[1]), number(m, o.r[2])
			m.b &^= 1 << o.r[0]
			if holds(x, y, x != x || y != y) {
				m.b |= 1 << o.r[0]
			}
		}))
	}
	for name, want := range map[string]uint16{"movt.s": 1, "movf.s": 0} {
		all = append(all, instruction(name, "f<> f< b<", 3, func(m *Machine, o *op) {
			if m.b>>o.r[2]&1 == want {
				m.f[o.r[0]] = m.f[o.r[1]]
			}
		}))
	}
	for name, holds := range map[string]func(t uint32) bool{
		"eqz": func(t uint32) bool { return t == 0 }, "nez": func(t uint32) bool { return t != 0 },
		"ltz": func(t uint32) bool { return int32(t) < 0 }, "gez": func(t uint32) bool { return int32(t) >= 0 },
	} {
		all = append(all, instruction("mov"+name+".s", "f<> f< a<", 3, func(m *Machine, o *op) {
			if holds(m.a[o.r[2]]) {
				m.f[o.r[0]] = m.f[o.r[1]]
			}
		}))
	}
	return all
}

// floatMemory are the loads and stores: with an immediate or a register added to the address, before the access or,
// with p, to the register after it.
func floatMemory() []spec {
	var all []spec
	for _, load := range []bool{true, false} {
		access, name, value := func(m *Machine, r uint8, at uint32) {
			if m.aligned(at, 4) {
				m.f[r] = uint32(m.load(at, 4))
			}
		}, "lsi lsx", "f>2"
		if !load {
			access, name, value = func(m *Machine, r uint8, at uint32) {
				if m.aligned(at, 4) {
					m.store(at, 4, uint64(m.f[r]))
				}
			}, "ssi ssx", "f<"
		}
		all = append(all,
			instruction(name[:3], value+" a< i:0:1020:4", 3, func(m *Machine, o *op) { access(m, o.r[0], m.a[o.r[1]]+uint32(o.imm)) }),
			instruction(name[:3]+"p", value+" a<> i:0:1020:4", 3, func(m *Machine, o *op) {
				access(m, o.r[0], m.a[o.r[1]])
				m.a[o.r[1]] += uint32(o.imm)
			}),
			instruction(name[4:], value+" a< a<", 3, func(m *Machine, o *op) { access(m, o.r[0], m.a[o.r[1]]+m.a[o.r[2]]) }),
			instruction(name[4:]+"p", value+" a<> a<", 3, func(m *Machine, o *op) {
				access(m, o.r[0], m.a[o.r[1]])
				m.a[o.r[1]] += m.a[o.r[2]]
			}))
	}
	return all
}
