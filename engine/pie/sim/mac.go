package sim

// dots add the products of all lanes to ACCX.
var dots = map[string]func(m *Machine, x, y *vector){
	"s8": func(m *Machine, x, y *vector) {
		sum := int32(0)
		for i := range x {
			sum += int32(int8(x[i])) * int32(int8(y[i]))
		}
		m.addAccx(int64(sum))
	},
	"u8": func(m *Machine, x, y *vector) {
		sum := uint32(0)
		for i := range x {
			sum += uint32(x[i]) * uint32(y[i])
		}
		m.accx = min(m.accx+uint64(sum), mask40)
	},
	"s16": func(m *Machine, x, y *vector) {
		sum := int64(0)
		for i := range 8 {
			sum += int64(int16(h16(x, i))) * int64(int16(h16(y, i)))
		}
		m.addAccx(sum)
	},
	"u16": func(m *Machine, x, y *vector) {
		sum := uint64(0)
		for i := range 8 {
			sum += uint64(h16(x, i)) * uint64(h16(y, i))
		}
		m.accx = min(m.accx+sum, mask40)
	},
}

func (m *Machine) addAccx(v int64) {
	m.accx = uint64(clamp(signed40(m.accx)+v, -1<<39, 1<<39-1)) & mask40
}

// sums add the product of each lane to the lane of QACC.
var sums = map[string]func(m *Machine, x, y *vector){
	"s8": func(m *Machine, x, y *vector) {
		m.qacc.use(false)
		for i := range x {
			m.qacc.add8(i, int64(int8(x[i]))*int64(int8(y[i])))
		}
	},
	"u8": func(m *Machine, x, y *vector) {
		m.qacc.use(false)
		for i := range x {
			m.qacc.addUnsigned8(i, uint64(x[i])*uint64(y[i]))
		}
	},
	"s16": func(m *Machine, x, y *vector) {
		m.qacc.use(true)
		for i := range 8 {
			m.qacc.add16(i, int64(int16(h16(x, i)))*int64(int16(h16(y, i))))
		}
	},
	"u16": func(m *Machine, x, y *vector) {
		m.qacc.use(true)
		for i := range 8 {
			m.qacc.addUnsigned16(i, uint64(h16(x, i))*uint64(h16(y, i)))
		}
	},
}

// multiplyAccumulate are the instructions that add products to ACCX or QACC, with the load of the next operands: the
// product is that of the old ones. With qup, two more registers are shifted into place.
func multiplyAccumulate() []spec {
	var all []spec
	add := func(s ...spec) { all = append(all, s...) }
	for _, into := range []string{"accx", "qacc"} {
		table, uses := dots, " accx<2>2"
		if into == "qacc" {
			table, uses = sums, " qaccl<2>2 qacch<2>2"
		}
		for kind, f := range table {
			name := "ee.vmulas." + kind + "." + into
			add(instruction(name, "q< q<"+uses, 3, func(m *Machine, o *op) { f(m, &m.q[o.r[0]], &m.q[o.r[1]]) }))
			run := func(m *Machine, o *op) {
				f(m, &m.q[o.r[3]], &m.q[o.r[4]])
				m.load128(o.r[0], m.a[o.r[1]])
			}
			add(moved(name+".ld", "q>2", "q< q<"+uses, 4, 1, fused16, run)...)
			for _, s := range moved(name+".ld", "q>2", "q< q< q<> q< sarb<"+uses, 4, 1, fused16, func(m *Machine, o *op) {
				f(m, &m.q[o.r[3]], &m.q[o.r[4]])
				z := funnel(&m.q[o.r[5]], &m.q[o.r[6]], m.sarByte)
				m.load128(o.r[0], m.a[o.r[1]])
				m.q[o.r[5]] = z
			}) {
				s.name += ".qup"
				add(s)
			}
			if into == "accx" {
				continue
			}
			n := uint32(1)
			if kind == "s16" || kind == "u16" {
				n = 2
			}
			add(instruction(name+".ldbc.incp", "q>2 a<> q< q<"+uses, 3, func(m *Machine, o *op) {
				f(m, &m.q[o.r[2]], &m.q[o.r[3]])
				m.q[o.r[0]] = broadcast(m.load(m.a[o.r[1]], n), n)
				m.a[o.r[1]] += n
			}))
			add(instruction(name+".ldbc.incp.qup", "q>2 a<> q< q< q<> q< sarb<"+uses, 4, func(m *Machine, o *op) {
				f(m, &m.q[o.r[2]], &m.q[o.r[3]])
				z := funnel(&m.q[o.r[4]], &m.q[o.r[5]], m.sarByte)
				m.q[o.r[0]] = broadcast(m.load(m.a[o.r[1]], n), n)
				m.q[o.r[4]] = z
				m.a[o.r[1]] += n
			}))
		}
	}
	return all
}

// vectorScalar are the multiplications of all lanes by one, added to QACC.
func vectorScalar() []spec {
	eight := func(m *Machine, x *vector, by byte) {
		m.qacc.use(false)
		for i := range x {
			m.qacc.add8(i, int64(int8(x[i]))*int64(int8(by)))
		}
	}
	sixteen := func(m *Machine, x *vector, by uint16) {
		m.qacc.use(true)
		for i := range 8 {
			m.qacc.add16(i, int64(int16(h16(x, i)))*int64(int16(by)))
		}
	}
	const uses = " qaccl<2>2 qacch<2>2"
	return []spec{
		instruction("ee.vsmulas.s8.qacc", "q< q< i:0:15:1"+uses, 3, func(m *Machine, o *op) {
			eight(m, &m.q[o.r[0]], m.q[o.r[1]][o.imm])
		}),
		instruction("ee.vsmulas.s16.qacc", "q< q< i:0:7:1"+uses, 3, func(m *Machine, o *op) {
			sixteen(m, &m.q[o.r[0]], h16(&m.q[o.r[1]], int(o.imm)))
		}),
		instruction("ee.vsmulas.s8.qacc.ld.incp", "q>2 a<> q< q< i:0:15:1"+uses, 4, func(m *Machine, o *op) {
			eight(m, &m.q[o.r[2]], m.q[o.r[3]][o.imm])
			m.load128(o.r[0], m.a[o.r[1]])
			m.a[o.r[1]] += 16
		}),
		instruction("ee.vsmulas.s16.qacc.ld.incp", "q>2 a<> q< q< i:0:7:1"+uses, 4, func(m *Machine, o *op) {
			sixteen(m, &m.q[o.r[2]], h16(&m.q[o.r[3]], int(o.imm)))
			m.load128(o.r[0], m.a[o.r[1]])
			m.a[o.r[1]] += 16
		}),
	}
}

// accumulatorReads shift accumulators right, towards minus infinity, and give them saturated. The last operand has no
// documented meaning, and is 0.
func accumulatorReads() []spec {
	return []spec{
		instruction("ee.srs.accx", "a> a< i:0:0:1 accx<>", 3, func(m *Machine, o *op) {
			v := signed40(m.accx) >> (m.a[o.r[1]] & 63)
			m.accx = uint64(v) & mask40
			m.a[o.r[0]] = uint32(clamp(v, -1<<31, 1<<31-1))
		}),
		instruction("ee.srcmb.s8.qacc", "q> a< i:0:0:1 qaccl<> qacch<>", 3, func(m *Machine, o *op) {
			m.qacc.use(false)
			for i := range 16 {
				v := signed20(m.qacc.lanes[i]) >> (m.a[o.r[1]] & 31)
				m.qacc.lanes[i] = uint64(v) & mask20
				m.q[o.r[0]][i] = byte(clamp(v, -128, 127))
			}
		}),
		instruction("ee.srcmb.s16.qacc", "q> a< i:0:0:1 qaccl<> qacch<>", 3, func(m *Machine, o *op) {
			m.qacc.use(true)
			for i := range 8 {
				v := signed40(m.qacc.lanes[i]) >> (m.a[o.r[1]] & 63)
				m.qacc.lanes[i] = uint64(v) & mask40
				put16(&m.q[o.r[0]], i, uint16(clamp(v, -1<<15, 1<<15-1)))
			}
		}),
	}
}

func moves() []spec {
	return []spec{
		instruction("ee.zero.q", "q>", 3, func(m *Machine, o *op) { m.q[o.r[0]] = vector{} }),
		instruction("ee.zero.accx", "accx>", 3, func(m *Machine, _ *op) { m.accx = 0 }),
		instruction("ee.zero.qacc", "qaccl> qacch>", 3, func(m *Machine, _ *op) { m.qacc.lanes = [16]uint64{} }),
		instruction("mv.qr", "q> q<", 3, func(m *Machine, o *op) { m.q[o.r[0]] = m.q[o.r[1]] }),
		instruction("ee.movi.32.a", "qw< a> i:0:3:1", 3, func(m *Machine, o *op) {
			m.a[o.r[1]] = h32(&m.q[o.r[0]], int(o.imm))
		}),
		instruction("ee.movi.32.q", "qw> a< i:0:3:1", 3, func(m *Machine, o *op) {
			put32(&m.q[o.r[0]], int(o.imm), m.a[o.r[1]])
		}),
	}
}

// userRegisters read and write accumulators and SAR_BYTE in words.
func userRegisters() []spec {
	all := []spec{
		instruction("rur.accx_0", "a> accx0<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = uint32(m.accx) }),
		instruction("rur.accx_1", "a> accx1<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = uint32(m.accx >> 32) }),
		instruction("wur.accx_0", "a< accx0>", 3, func(m *Machine, o *op) {
			m.accx = m.accx&^(1<<32-1) | uint64(m.a[o.r[0]])
		}),
		instruction("wur.accx_1", "a< accx1>", 3, func(m *Machine, o *op) {
			m.accx = m.accx&(1<<32-1) | uint64(m.a[o.r[0]]&255)<<32
		}),
		instruction("rur.sar_byte", "a> sarb<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = m.sarByte }),
		instruction("wur.sar_byte", "a< sarb>", 3, func(m *Machine, o *op) { m.sarByte = m.a[o.r[0]] & 15 }),
	}
	for high, half := range []string{"l", "h"} {
		for i, word := range []string{"0", "1", "2", "3", "4"} {
			name, res := ".qacc_"+half+"_"+word, "qacc"+half+word
			all = append(all,
				instruction("rur"+name, "a> "+res+"<", 3, func(m *Machine, o *op) { m.a[o.r[0]] = m.qacc.half(high)[i] }),
				instruction("wur"+name, "a< "+res+">", 3, func(m *Machine, o *op) {
					w := m.qacc.half(high)
					w[i] = m.a[o.r[0]]
					m.qacc.setHalf(high, w)
				}))
		}
	}
	return all
}
