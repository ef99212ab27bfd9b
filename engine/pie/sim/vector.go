package sim

import (
	"encoding/binary"
	"strconv"

	"github.com/chiplm/chiplm/engine/pie"
)

func (m *Machine) load128(q uint8, address uint32) {
	if b := m.at(address&^15, 16, pie.Read); b != nil {
		m.q[q] = vector(b)
	}
}

func (m *Machine) store128(v *vector, address uint32) {
	if b := m.at(address&^15, 16, pie.Write); b != nil {
		copy(b, v[:])
	}
}

// load reads so many bytes, whose number masks the address.
func (m *Machine) load(address, n uint32) uint64 {
	b := m.at(address&^(n-1), n, pie.Read)
	switch {
	case b == nil:
		return 0
	case n == 1:
		return uint64(b[0])
	case n == 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case n == 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func (m *Machine) store(address, n uint32, v uint64) {
	b := m.at(address&^(n-1), n, pie.Write)
	switch {
	case b == nil:
	case n == 1:
		b[0] = byte(v)
	case n == 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case n == 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

// broadcast fills a vector with an element of so many bytes.
func broadcast(v uint64, n uint32) (z vector) {
	for i := range z {
		z[i] = byte(v >> (8 * (uint32(i) % n)))
	}
	return z
}

// moved makes the .ip and .xp forms of an access whose address register is operand `at`: afterwards the register grows
// by the immediate, or by the register that is the next operand.
func moved(name, before, after string, size uint8, at int, ranges string, run func(m *Machine, o *op)) []spec {
	word := func(s string) string {
		if s != "" {
			return s + " "
		}
		return s
	}
	return []spec{
		instruction(name+".ip", word(before)+"a<> i:"+ranges+" "+after, size, func(m *Machine, o *op) {
			run(m, o)
			m.a[o.r[at]] += uint32(o.imm)
		}),
		instruction(name+".xp", word(before)+"a<> a< "+after, size, func(m *Machine, o *op) {
			step := m.a[o.r[at+1]]
			run(m, o)
			m.a[o.r[at]] += step
		}),
	}
}

const (
	steps16 = "-2048:2032:16"
	fused16 = "-512:496:16"
	steps8  = "-1024:1016:8"
	steps4  = "-512:508:4"
)

func stores(all []spec) []spec {
	for i := range all {
		all[i].tenths = storeTenths
	}
	return all
}

// vectorSpecs are the instructions of the vector unit.
func vectorSpecs() []spec {
	var all []spec
	for _, group := range [][]spec{accesses(), floatAccesses(), accumulatorAccesses(), alignment(), arithmetic(),
		multiplyAccumulate(), vectorScalar(), accumulatorReads(), moves(), userRegisters()} {
		all = append(all, group...)
	}
	return all
}

func accesses() []spec {
	all := moved("ee.vld.128", "q>2", "", 3, 1, steps16, func(m *Machine, o *op) { m.load128(o.r[0], m.a[o.r[1]]) })
	all = append(all, stores(moved("ee.vst.128", "q<", "", 3, 1, steps16, func(m *Machine, o *op) {
		m.store128(&m.q[o.r[0]], m.a[o.r[1]])
	}))...)
	for half, from := range map[string]int{"l": 0, "h": 8} {
		all = append(all, moved("ee.vld."+half+".64", "q"+half+">2", "", 3, 1, steps8, func(m *Machine, o *op) {
			if b := m.at(m.a[o.r[1]]&^7, 8, pie.Read); b != nil {
				copy(m.q[o.r[0]][from:], b)
			}
		})...)
		all = append(all, moved("ee.vst."+half+".64", "q"+half+"<", "", 3, 1, steps8, func(m *Machine, o *op) {
			m.store(m.a[o.r[1]], 8, binary.LittleEndian.Uint64(m.q[o.r[0]][from:]))
		})...)
	}
	for n, ranges := range map[uint32]string{1: "0:127:1", 2: "0:254:2", 4: steps4} {
		name := "ee.vldbc." + strconv.Itoa(8*int(n))
		run := func(m *Machine, o *op) { m.q[o.r[0]] = broadcast(m.load(m.a[o.r[1]], n), n) }
		all = append(all, instruction(name, "q>2 a<", 3, run))
		all = append(all, moved(name, "q>2", "", 3, 1, ranges, run)...)
	}
	return append(all,
		instruction("ee.vldhbc.16.incp", "q>2 q>2 a<>", 3, func(m *Machine, o *op) {
			b := m.at(m.a[o.r[2]]&^15, 16, pie.Read)
			if b == nil {
				return
			}
			v := vector(b)
			m.q[o.r[0]], m.q[o.r[1]] = zip(&v, &v, 2)
			m.a[o.r[2]] += 16
		}),
		instruction("ld.qr", "q>2 a< i:-128:112:16", 3, func(m *Machine, o *op) { m.load128(o.r[0], m.a[o.r[1]]+uint32(o.imm)) }),
		stores([]spec{instruction("st.qr", "q< a< i:-128:112:16", 3, func(m *Machine, o *op) {
			m.store128(&m.q[o.r[0]], m.a[o.r[1]]+uint32(o.imm))
		})})[0],
		instruction("ee.ldxq.32", "qw>2 qs< a< i:0:3:1 i:0:7:1", 4, func(m *Machine, o *op) {
			at := m.a[o.r[2]] + uint32(int32(int16(h16(&m.q[o.r[1]], int(o.second))))<<2)
			put32(&m.q[o.r[0]], int(o.imm), uint32(m.load(at, 4)))
		}),
		instruction("ee.stxq.32", "qw< qs< a< i:0:3:1 i:0:7:1", 4, func(m *Machine, o *op) {
			at := m.a[o.r[2]] + uint32(int32(int16(h16(&m.q[o.r[1]], int(o.second))))<<2)
			m.store(at, 4, uint64(h32(&m.q[o.r[0]], int(o.imm))))
		}),
	)
}

// floatAccesses move two or four float registers; the last one named has the lowest address.
func floatAccesses() []spec {
	var all []spec
	for _, n := range []int{2, 4} {
		name, ranges, xp := strconv.Itoa(32*n), "-128:112:16", uint8(4)
		if n == 2 {
			ranges, xp = steps8, 3
		}
		var load, store string
		for i := range n {
			if i > 0 {
				load, store = load+" ", store+" "
			}
			load, store = load+"f>2", store+"f<"
		}
		get := moved("ee.ldf."+name, load, "", 4, n, ranges, func(m *Machine, o *op) {
			b := m.at(m.a[o.r[n]]&^uint32(4*n-1), uint32(4*n), pie.Read)
			for i := range len(b) / 4 {
				m.f[o.r[n-1-i]] = binary.LittleEndian.Uint32(b[4*i:])
			}
		})
		put := moved("ee.stf."+name, store, "", 4, n, ranges, func(m *Machine, o *op) {
			b := m.at(m.a[o.r[n]]&^uint32(4*n-1), uint32(4*n), pie.Write)
			for i := range len(b) / 4 {
				binary.LittleEndian.PutUint32(b[4*i:], m.f[o.r[n-1-i]])
			}
		})
		if n == 4 {
			put = stores(put)
		}
		get[1].size, put[1].size = xp, xp
		all = append(all, get...)
		all = append(all, put...)
	}
	return all
}

func accumulatorAccesses() []spec {
	all := []spec{
		instruction("ee.ld.accx.ip", "a<> i:"+steps8+" accx>2", 3, func(m *Machine, o *op) {
			m.accx = m.load(m.a[o.r[0]], 8) & mask40
			m.a[o.r[0]] += uint32(o.imm)
		}),
		instruction("ee.st.accx.ip", "a<> i:"+steps8+" accx<", 3, func(m *Machine, o *op) {
			m.store(m.a[o.r[0]], 8, m.accx)
			m.a[o.r[0]] += uint32(o.imm)
		}),
	}
	for high, name := range []string{"qaccl", "qacch"} {
		in := "ee.ld.qacc_" + name[4:]
		to := "ee.st.qacc_" + name[4:]
		all = append(all,
			instruction(in+".l.128.ip", "a<> i:"+steps16+" "+name+".>2", 3, func(m *Machine, o *op) {
				if b := m.at(m.a[o.r[0]]&^15, 16, pie.Read); b != nil {
					w := m.qacc.half(high)
					for i := range 4 {
						w[i] = binary.LittleEndian.Uint32(b[4*i:])
					}
					m.qacc.setHalf(high, w)
				}
				m.a[o.r[0]] += uint32(o.imm)
			}),
			instruction(in+".h.32.ip", "a<> i:"+steps4+" "+name+"4>2", 3, func(m *Machine, o *op) {
				w := m.qacc.half(high)
				w[4] = uint32(m.load(m.a[o.r[0]], 4))
				m.qacc.setHalf(high, w)
				m.a[o.r[0]] += uint32(o.imm)
			}),
			stores([]spec{instruction(to+".l.128.ip", "a<> i:"+steps16+" "+name+".<", 3, func(m *Machine, o *op) {
				w := m.qacc.half(high)
				var v vector
				for i := range 4 {
					put32(&v, i, w[i])
				}
				m.store128(&v, m.a[o.r[0]])
				m.a[o.r[0]] += uint32(o.imm)
			})})[0],
			instruction(to+".h.32.ip", "a<> i:"+steps4+" "+name+"4<", 3, func(m *Machine, o *op) {
				m.store(m.a[o.r[0]], 4, uint64(m.qacc.half(high)[4]))
				m.a[o.r[0]] += uint32(o.imm)
			}))
	}
	for _, kind := range []string{"s8", "u8", "s16", "u16"} {
		all = append(all, moved("ee.ldqa."+kind+".128", "", "qaccl>2 qacch>2", 3, 0, steps16, func(m *Machine, o *op) {
			if b := m.at(m.a[o.r[0]]&^15, 16, pie.Read); b != nil {
				v := vector(b)
				m.qacc.spread(kind, &v)
			}
		})...)
		all = append(all, instruction("ee.mov."+kind+".qacc", "q< qaccl> qacch>", 3, func(m *Machine, o *op) {
			m.qacc.spread(kind, &m.q[o.r[0]])
		}))
	}
	return all
}

// spread fills the lanes with those of a vector, extended.
func (q *qacc) spread(kind string, v *vector) {
	q.wide = kind == "s16" || kind == "u16"
	for i := range 16 {
		switch {
		case kind == "s8":
			q.lanes[i] = uint64(int64(int8(v[i]))) & mask20
		case kind == "u8":
			q.lanes[i] = uint64(v[i])
		case i >= 8:
		case kind == "s16":
			q.lanes[i] = uint64(int64(int16(h16(v, i)))) & mask40
		default:
			q.lanes[i] = uint64(h16(v, i))
		}
	}
}

// alignment are the loads of addresses that are no multiples of 16, and the shifts that put them right.
func alignment() []spec {
	all := moved("ee.ld.128.usar", "q>2", "sarb>", 3, 1, steps16, func(m *Machine, o *op) {
		m.sarByte = m.a[o.r[1]] & 15
		m.load128(o.r[0], m.a[o.r[1]])
	})
	all = append(all, moved("ee.src.q.ld", "q>2", "q<> q< sarb<", 4, 1, steps16, func(m *Machine, o *op) {
		z := funnel(&m.q[o.r[3]], &m.q[o.r[4]], m.sarByte)
		m.load128(o.r[0], m.a[o.r[1]])
		m.q[o.r[3]] = z
	})...)
	for _, way := range []struct {
		name string
		sign int
	}{{"ee.slc", 1}, {"ee.src", -1}} {
		all = append(all,
			instruction(way.name+"i.2q", "q<> q<> i:0:15:1", 3, func(m *Machine, o *op) {
				shiftPair(&m.q[o.r[0]], &m.q[o.r[1]], way.sign*int(o.imm+1))
			}),
			instruction(way.name+"xxp.2q", "q<> q<> a<> a<", 3, func(m *Machine, o *op) {
				shiftPair(&m.q[o.r[0]], &m.q[o.r[1]], way.sign*int(m.a[o.r[2]]&15+1))
				m.a[o.r[2]] += m.a[o.r[3]]
			}))
	}
	return append(all,
		instruction("ee.src.q", "q> q< q< sarb<", 3, func(m *Machine, o *op) {
			m.q[o.r[0]] = funnel(&m.q[o.r[1]], &m.q[o.r[2]], m.sarByte)
		}),
		instruction("ee.src.q.qup", "q> q<> q< sarb<", 3, func(m *Machine, o *op) {
			m.q[o.r[0]], m.q[o.r[1]] = funnel(&m.q[o.r[1]], &m.q[o.r[2]], m.sarByte), m.q[o.r[2]]
		}),
		stores([]spec{instruction("ee.srcq.128.st.incp", "q< q< a<> sarb<", 3, func(m *Machine, o *op) {
			z := funnel(&m.q[o.r[0]], &m.q[o.r[1]], m.sarByte)
			m.store128(&z, m.a[o.r[2]])
			m.a[o.r[2]] += 16
		})})[0])
}

// withAccess makes the three forms of an instruction of lanes: alone, with a load, with a store of the old value.
func withAccess(name, def, more string, f func(m *Machine, x, y *vector) vector) []spec {
	return []spec{
		instruction(name, "q"+def+" q< q<"+more, 3, func(m *Machine, o *op) {
			m.q[o.r[0]] = f(m, &m.q[o.r[1]], &m.q[o.r[2]])
		}),
		instruction(name+".ld.incp", "q>2 a<> q"+def+" q< q<"+more, 4, func(m *Machine, o *op) {
			z := f(m, &m.q[o.r[3]], &m.q[o.r[4]])
			m.load128(o.r[0], m.a[o.r[1]])
			m.q[o.r[2]] = z
			m.a[o.r[1]] += 16
		}),
		stores([]spec{instruction(name+".st.incp", "q< a<> q"+def+" q< q<"+more, 4, func(m *Machine, o *op) {
			m.store128(&m.q[o.r[0]], m.a[o.r[1]])
			m.q[o.r[2]] = f(m, &m.q[o.r[3]], &m.q[o.r[4]])
			m.a[o.r[1]] += 16
		})})[0],
	}
}

func arithmetic() []spec {
	var all []spec
	lanes := func(name string, f func(bits int) func(x, y int64) int64, fused bool) {
		for width, g := range byWidth(f) {
			forms := withAccess(name+"."+width, ">", "", func(_ *Machine, x, y *vector) vector { return g(x, y) })
			if !fused {
				forms = forms[:1]
			}
			all = append(all, forms...)
		}
	}
	lanes("ee.vadds", saturating(1), true)
	lanes("ee.vsubs", saturating(-1), true)
	lanes("ee.vmax", same(func(x, y int64) int64 { return max(x, y) }), true)
	lanes("ee.vmin", same(func(x, y int64) int64 { return min(x, y) }), true)
	lanes("ee.vcmp.eq", comparing(func(x, y int64) bool { return x == y }), false)
	lanes("ee.vcmp.lt", comparing(func(x, y int64) bool { return x < y }), false)
	lanes("ee.vcmp.gt", comparing(func(x, y int64) bool { return x > y }), false)
	for _, kind := range []string{"s8", "u8", "s16", "u16"} {
		all = append(all, withAccess("ee.vmul."+kind, ">2", " sar<", func(m *Machine, x, y *vector) vector {
			return multiply(kind, x, y, m.sar)
		})...)
	}
	for name, f := range map[string]func(x, y uint64) uint64{
		"ee.andq": func(x, y uint64) uint64 { return x & y },
		"ee.orq":  func(x, y uint64) uint64 { return x | y },
		"ee.xorq": func(x, y uint64) uint64 { return x ^ y },
	} {
		g := bitwise(f)
		all = append(all, instruction(name, "q> q< q<", 3, func(m *Machine, o *op) {
			m.q[o.r[0]] = g(&m.q[o.r[1]], &m.q[o.r[2]])
		}))
	}
	for size, width := range map[int]string{1: "8", 2: "16", 4: "32"} {
		all = append(all,
			instruction("ee.vzip."+width, "q<> q<>", 3, func(m *Machine, o *op) {
				m.q[o.r[0]], m.q[o.r[1]] = zip(&m.q[o.r[0]], &m.q[o.r[1]], size)
			}),
			instruction("ee.vunzip."+width, "q<> q<>", 3, func(m *Machine, o *op) {
				m.q[o.r[0]], m.q[o.r[1]] = unzip(&m.q[o.r[0]], &m.q[o.r[1]], size)
			}))
	}
	shift := func(f func(x, n uint32) uint32) func(m *Machine, o *op) {
		return func(m *Machine, o *op) {
			if m.sar > 31 {
				m.fail("SAR is %d; shifts of lanes of 32 bits take 0 to 31", m.sar)
			}
			for i := range 4 {
				put32(&m.q[o.r[0]], i, f(h32(&m.q[o.r[1]], i), m.sar))
			}
		}
	}
	return append(all,
		instruction("ee.notq", "q> q<", 3, func(m *Machine, o *op) {
			for i, v := range m.q[o.r[1]] {
				m.q[o.r[0]][i] = ^v
			}
		}),
		instruction("ee.vsr.32", "q> q< sar<", 3, shift(func(x, n uint32) uint32 { return uint32(int32(x) >> n) })),
		instruction("ee.vsl.32", "q> q< sar<", 3, shift(func(x, n uint32) uint32 { return x << n })),
		instruction("ee.vrelu.s8", "q<>2 a< a<", 3, func(m *Machine, o *op) {
			by := int64(int8(m.a[o.r[1]]))
			m.q[o.r[0]] = relu8(&m.q[o.r[0]], func(int) int64 { return by }, m.a[o.r[2]]&31)
		}),
		instruction("ee.vrelu.s16", "q<>2 a< a<", 3, func(m *Machine, o *op) {
			by := int64(int16(m.a[o.r[1]]))
			m.q[o.r[0]] = relu16(&m.q[o.r[0]], func(int) int64 { return by }, m.a[o.r[2]]&63)
		}),
		instruction("ee.vprelu.s8", "q>2 q< q< a<", 3, func(m *Machine, o *op) {
			y := m.q[o.r[2]]
			m.q[o.r[0]] = relu8(&m.q[o.r[1]], func(i int) int64 { return int64(int8(y[i])) }, m.a[o.r[3]]&31)
		}),
		instruction("ee.vprelu.s16", "q>2 q< q< a<", 3, func(m *Machine, o *op) {
			y := m.q[o.r[2]]
			m.q[o.r[0]] = relu16(&m.q[o.r[1]], func(i int) int64 { return int64(int16(h16(&y, i))) }, m.a[o.r[3]]&63)
		}))
}
