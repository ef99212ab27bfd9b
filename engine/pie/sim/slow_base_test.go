package sim

import (
	"math"
	"math/big"
	"strings"
)

// scalar runs an instruction that is not the vector unit's, once more from its definition. taken says that a branch is.
func (s *slow) scalar(name string, r []int) (taken, known bool) {
	name = strings.TrimSuffix(name, ".n")
	signed := func(i int) *big.Int { return number(int64(int32(s.a[r[i]]))) }
	plain := func(i int) *big.Int { return number(int64(s.a[r[i]])) }
	put := func(v *big.Int) { s.a[r[0]] = uint32(field(v, 0, 32).Uint64()) }
	z := new(big.Int)
	switch name {
	case "nop":
	case "add":
		put(z.Add(plain(1), plain(2)))
	case "sub":
		put(z.Sub(plain(1), plain(2)))
	case "addi", "addmi":
		put(z.Add(plain(1), number(int64(r[2]))))
	case "addx2", "addx4", "addx8", "subx2", "subx4", "subx8":
		z.Mul(plain(1), number(int64(name[4]-'0')))
		if name[0] == 'a' {
			put(z.Add(z, plain(2)))
		} else {
			put(z.Sub(z, plain(2)))
		}
	case "mov":
		put(plain(1))
	case "movi":
		put(number(int64(r[1])))
	case "neg":
		put(z.Neg(plain(1)))
	case "abs":
		put(z.Abs(signed(1)))
	case "min", "max", "minu", "maxu":
		x, y := signed(1), signed(2)
		if strings.HasSuffix(name, "u") {
			x, y = plain(1), plain(2)
		}
		if (x.Cmp(y) < 0) != (name[:3] == "min") {
			x = y
		}
		put(x)
	case "and":
		put(z.And(plain(1), plain(2)))
	case "or":
		put(z.Or(plain(1), plain(2)))
	case "xor":
		put(z.Xor(plain(1), plain(2)))
	case "mull":
		put(z.Mul(plain(1), plain(2)))
	case "muluh":
		put(z.Rsh(z.Mul(plain(1), plain(2)), 32))
	case "mulsh":
		put(z.Rsh(z.Mul(signed(1), signed(2)), 32))
	case "mul16s":
		put(z.Mul(extended(plain(1), 0, 16, true), extended(plain(2), 0, 16, true)))
	case "mul16u":
		put(z.Mul(field(plain(1), 0, 16), field(plain(2), 0, 16)))
	case "quos":
		put(z.Quo(signed(1), signed(2)))
	case "rems":
		put(z.Rem(signed(1), signed(2)))
	case "quou":
		put(z.Quo(plain(1), plain(2)))
	case "remu":
		put(z.Rem(plain(1), plain(2)))
	case "nsau":
		put(number(int64(32 - plain(1).BitLen())))
	case "nsa": // sign bits after the first
		v := signed(1)
		if v.Sign() < 0 {
			v.Not(v)
		}
		put(number(int64(31 - v.BitLen())))
	case "clamps":
		put(limit(signed(1), uint(r[2])+1, true))
	case "sext":
		put(extended(plain(1), 0, uint(r[2])+1, true))
	case "moveqz", "movnez", "movltz", "movgez":
		if zero(name[3:], signed(2)) {
			put(plain(1))
		}
	case "movt", "movf":
		if s.b>>r[2]&1 == 1 == (name == "movt") {
			put(plain(1))
		}
	case "slli":
		put(z.Lsh(plain(1), uint(r[2])))
	case "srli":
		put(z.Rsh(plain(1), uint(r[2])))
	case "srai":
		put(z.Rsh(signed(1), uint(r[2])))
	case "extui":
		put(field(plain(1), uint(r[2]), uint(r[3])))
	case "sll":
		put(z.Rsh(z.Lsh(plain(1), 32), s.sar))
	case "srl":
		put(z.Rsh(plain(1), s.sar))
	case "sra":
		put(z.Rsh(signed(1), s.sar))
	case "src":
		put(z.Rsh(z.Add(z.Lsh(plain(1), 32), plain(2)), s.sar))
	case "ssai":
		s.sar = uint(r[0])
	case "ssl":
		s.sar = 32 - uint(s.a[r[0]]%32)
	case "ssr":
		s.sar = uint(s.a[r[0]] % 32)
	case "ssa8l":
		s.sar = 8 * uint(s.a[r[0]]%4)
	case "wsr.sar":
		s.sar = uint(s.a[r[0]] % 64)
	case "rsr.sar":
		put(number(int64(s.sar)))
	case "l8ui":
		put(s.read(s.a[r[1]]+uint32(r[2]), 1))
	case "l16ui":
		put(s.read(s.a[r[1]]+uint32(r[2]), 2))
	case "l16si":
		put(extended(s.read(s.a[r[1]]+uint32(r[2]), 2), 0, 16, true))
	case "l32i":
		put(s.read(s.a[r[1]]+uint32(r[2]), 4))
	case "s8i":
		s.write(s.a[r[1]]+uint32(r[2]), 1, plain(0))
	case "s16i":
		s.write(s.a[r[1]]+uint32(r[2]), 2, plain(0))
	case "s32i":
		s.write(s.a[r[1]]+uint32(r[2]), 4, plain(0))
	case "j":
		return true, true
	case "bt", "bf":
		return s.b>>r[0]&1 == 1 == (name == "bt"), true
	case "beqz", "bnez", "bltz", "bgez":
		return zero(name[1:], signed(0)), true
	case "bbci", "bbsi":
		return plain(0).Bit(r[1]) == 1 == (name == "bbsi"), true
	case "bbc", "bbs":
		return plain(0).Bit(int(s.a[r[1]]%32)) == 1 == (name == "bbs"), true
	case "bany", "bnone":
		return z.And(plain(0), plain(1)).Sign() != 0 == (name == "bany"), true
	case "ball", "bnall": // no bit of the second is clear in the first
		return z.AndNot(plain(1), plain(0)).Sign() == 0 == (name == "ball"), true
	case "beq", "bne", "blt", "bge":
		return compared(name[1:], signed(0), signed(1)), true
	case "bltu", "bgeu":
		return compared(name[1:3], plain(0), plain(1)), true
	case "beqi", "bnei", "blti", "bgei":
		return compared(name[1:3], signed(0), number(int64(r[1]))), true
	case "bltui", "bgeui":
		return compared(name[1:3], plain(0), number(int64(r[1]))), true
	default:
		return false, s.float(name, r)
	}
	return false, true
}

func zero(how string, v *big.Int) bool {
	return map[string]bool{"eqz": v.Sign() == 0, "nez": v.Sign() != 0, "ltz": v.Sign() < 0, "gez": v.Sign() >= 0}[how]
}

func compared(how string, x, y *big.Int) bool {
	c := x.Cmp(y)
	return map[string]bool{"eq": c == 0, "ne": c != 0, "lt": c < 0, "ge": c >= 0}[how]
}

// rational is the value of a finite float.
func rational(bits uint32) *big.Rat {
	return new(big.Rat).SetFloat64(float64(math.Float32frombits(bits)))
}

// rounded is the nearest float, to even; of zero the given sign.
func rounded(v *big.Rat, negative bool) uint32 {
	f, _ := v.Float32()
	if v.Sign() == 0 && negative {
		return 1 << 31
	}
	return math.Float32bits(f)
}

// float runs an instruction of the floating-point unit on finite numbers.
func (s *slow) float(name string, r []int) bool {
	value := func(i int) *big.Rat { return rational(s.f[r[i]]) }
	minus := func(i int) bool { return s.f[r[i]]>>31 == 1 }
	z := new(big.Rat)
	switch name {
	case "add.s":
		s.f[r[0]] = rounded(z.Add(value(1), value(2)), minus(1) && minus(2))
	case "sub.s":
		s.f[r[0]] = rounded(z.Sub(value(1), value(2)), minus(1) && !minus(2))
	case "mul.s":
		s.f[r[0]] = rounded(z.Mul(value(1), value(2)), minus(1) != minus(2))
	case "madd.s", "msub.s": // one rounding
		z.Mul(value(1), value(2))
		below := minus(1) != minus(2)
		if name == "msub.s" {
			z.Neg(z)
			below = !below
		}
		s.f[r[0]] = rounded(z.Add(z, value(0)), below && minus(0))
	case "mov.s":
		s.f[r[0]] = s.f[r[1]]
	case "neg.s":
		s.f[r[0]] = s.f[r[1]] ^ 0x80000000
	case "abs.s":
		s.f[r[0]] = s.f[r[1]] & 0x7fffffff
	case "float.s":
		s.f[r[0]] = rounded(z.SetFrac(number(int64(int32(s.a[r[1]]))), power(uint(r[2]))), false)
	case "ufloat.s":
		s.f[r[0]] = rounded(z.SetFrac(number(int64(s.a[r[1]])), power(uint(r[2]))), false)
	case "round.s", "trunc.s", "floor.s", "ceil.s", "utrunc.s":
		s.a[r[0]] = converted(name, z.Mul(value(1), new(big.Rat).SetInt(power(uint(r[2])))))
	case "wfr":
		s.f[r[0]] = s.a[r[1]]
	case "rfr":
		s.a[r[0]] = s.f[r[1]]
	case "const.s":
		s.f[r[0]] = []uint32{0, 0x3f800000, 0x40000000, 0x3f000000}[r[1]]
	case "oeq.s", "ueq.s", "olt.s", "ult.s", "ole.s", "ule.s", "un.s":
		c := value(1).Cmp(value(2))
		s.b &^= 1 << r[0]
		if name[1:] == "eq.s" && c == 0 || name[1:] == "lt.s" && c < 0 || name[1:] == "le.s" && c <= 0 {
			s.b |= 1 << r[0]
		}
	case "movt.s", "movf.s":
		if s.b>>r[2]&1 == 1 == (name == "movt.s") {
			s.f[r[0]] = s.f[r[1]]
		}
	case "moveqz.s", "movnez.s", "movltz.s", "movgez.s":
		if zero(name[3:6], number(int64(int32(s.a[r[2]])))) {
			s.f[r[0]] = s.f[r[1]]
		}
	case "lsi", "lsip", "lsx", "lsxp", "ssi", "ssip", "ssx", "ssxp":
		at, by := s.a[r[1]], uint32(r[2])
		if name[2] == 'x' {
			by = s.a[r[2]]
		}
		if len(name) == 3 {
			at += by
		} else {
			s.a[r[1]] += by
		}
		if name[0] == 'l' {
			s.f[r[0]] = uint32(s.read(at, 4).Uint64())
		} else {
			s.write(at, 4, number(int64(s.f[r[0]])))
		}
	default:
		return false
	}
	return true
}

// converted rounds as the name says, and saturates.
func converted(name string, v *big.Rat) uint32 {
	below := new(big.Int).Div(v.Num(), v.Denom()) // Euclid's, which is the floor for a positive divisor
	rest := new(big.Rat).Sub(v, new(big.Rat).SetInt(below))
	up := false
	switch half := rest.Cmp(big.NewRat(1, 2)); name {
	case "round.s":
		up = half > 0 || half == 0 && below.Bit(0) == 1
	case "ceil.s":
		up = rest.Sign() > 0
	case "trunc.s", "utrunc.s":
		up = v.Sign() < 0 && rest.Sign() > 0
	}
	if up {
		below.Add(below, number(1))
	}
	if name == "utrunc.s" && v.Sign() > 0 {
		return uint32(limit(below, 32, false).Uint64())
	}
	return uint32(field(limit(below, 32, true), 0, 32).Uint64())
}
