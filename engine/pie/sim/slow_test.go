package sim

import (
	"math/big"
	"strings"
)

// slow is the state of the machine once more, as long numbers, for a second definition of the vector unit's
// instructions. It is written from the table of their effects, knows nothing of the machine, and takes its time.
type slow struct {
	a, f      [16]uint32
	b         uint16
	q         [8]*big.Int // 128 bits, lane 0 lowest
	accx      *big.Int    // 40 bits
	qacc      *big.Int    // 320 bits: QACC_L, then QACC_H
	sar, sarB uint
	memory    []byte
	base      uint32
}

func number(v int64) *big.Int { return big.NewInt(v) }

func power(n uint) *big.Int { return new(big.Int).Lsh(number(1), n) }

// field is a part of the bits of x.
func field(x *big.Int, at, width uint) *big.Int {
	y := new(big.Int).Rsh(x, at)
	return y.And(y, new(big.Int).Sub(power(width), number(1)))
}

// extended is the same part, as a number with a sign if one is wanted.
func extended(x *big.Int, at, width uint, sign bool) *big.Int {
	y := field(x, at, width)
	if sign && y.Bit(int(width)-1) == 1 {
		y.Sub(y, power(width))
	}
	return y
}

// with is x with a part replaced by the low bits of v.
func with(x *big.Int, at, width uint, v *big.Int) *big.Int {
	hole := new(big.Int).Lsh(field(x, at, width), at)
	y := new(big.Int).Sub(x, hole)
	return y.Add(y, new(big.Int).Lsh(field(v, 0, width), at))
}

// limit puts v between the least and the largest number of so many bits.
func limit(v *big.Int, width uint, sign bool) *big.Int {
	lo, hi := number(0), new(big.Int).Sub(power(width), number(1))
	if sign {
		lo, hi = new(big.Int).Neg(power(width-1)), new(big.Int).Sub(power(width-1), number(1))
	}
	if v.Cmp(lo) < 0 {
		return lo
	}
	if v.Cmp(hi) > 0 {
		return hi
	}
	return v
}

func (s *slow) read(address uint32, n uint) *big.Int {
	address &^= uint32(n - 1)
	x := new(big.Int)
	for i := range n {
		x = with(x, 8*i, 8, number(int64(s.memory[address-s.base+uint32(i)])))
	}
	return x
}

func (s *slow) write(address uint32, n uint, v *big.Int) {
	address &^= uint32(n - 1)
	for i := range n {
		s.memory[address-s.base+uint32(i)] = byte(field(v, 8*i, 8).Int64())
	}
}

// funnelled is the pair shifted right by SAR_BYTE bytes.
func (s *slow) funnelled(low, high int) *big.Int {
	pair := with(s.q[low], 128, 128, s.q[high])
	return field(pair, 8*s.sarB, 128)
}

func repeated(v *big.Int, width uint) *big.Int {
	x := new(big.Int)
	for at := uint(0); at < 128; at += width {
		x = with(x, at, width, v)
	}
	return x
}

// kindOf reads s8, u16 and the like.
func kindOf(s string) (width uint, sign bool) {
	return map[byte]uint{'8': 8, '6': 16, '2': 32}[s[len(s)-1]], s[0] == 's'
}

// lanewise computes each lane from those of two vectors.
func lanewise(x, y *big.Int, width uint, sign bool, f func(a, b *big.Int) *big.Int) *big.Int {
	z := new(big.Int)
	for at := uint(0); at < 128; at += width {
		z = with(z, at, width, f(extended(x, at, width, sign), extended(y, at, width, sign)))
	}
	return z
}

// product adds to the accumulators.
func (s *slow) product(into, kind string, x, y *big.Int) {
	width, sign := kindOf(kind)
	sum := number(0)
	for i := range 128 / width {
		p := new(big.Int).Mul(extended(x, i*width, width, sign), extended(y, i*width, width, sign))
		sum.Add(sum, p)
		if into == "qacc" {
			w := width / 8 * 20
			lane := extended(s.qacc, i*w, w, sign)
			s.qacc = with(s.qacc, i*w, w, limit(lane.Add(lane, p), w, sign))
		}
	}
	if into == "accx" {
		old := extended(s.accx, 0, 40, sign)
		s.accx = field(limit(old.Add(old, sum), 40, sign), 0, 40)
	}
}

// spread fills QACC from a vector.
func (s *slow) spread(kind string, v *big.Int) {
	width, sign := kindOf(kind)
	w := width / 8 * 20
	for i := range 128 / width {
		s.qacc = with(s.qacc, i*w, w, extended(v, i*width, width, sign))
	}
}

// vector runs an instruction of the vector unit. r are registers and immediates by place.
func (s *slow) vector(name string, r []int) bool {
	parts := strings.Split(strings.TrimPrefix(name, "ee."), ".")
	// What the address register grows by after an access of so many bytes, when it is operand `at`.
	last := parts[len(parts)-1]
	grow := func(at int, width int) {
		switch {
		case strings.HasSuffix(name, ".incp"), strings.HasSuffix(name, ".incp.qup"):
			s.a[r[at]] += uint32(width)
		case strings.Contains(name, ".ip"):
			s.a[r[at]] += uint32(r[at+1])
		case strings.Contains(name, ".xp"):
			s.a[r[at]] += s.a[r[at+1]]
		}
	}
	switch parts[0] {
	case "vld", "vst":
		n, at := uint(16), uint(0)
		if parts[1] != "128" {
			n = 8
			if parts[1] == "h" {
				at = 64
			}
		}
		if parts[0] == "vld" {
			s.q[r[0]] = with(s.q[r[0]], at, 8*n, s.read(s.a[r[1]], n))
		} else {
			s.write(s.a[r[1]], n, field(s.q[r[0]], at, 8*n))
		}
		grow(1, 0)
	case "vldbc":
		width, _ := kindOf(parts[1])
		s.q[r[0]] = repeated(s.read(s.a[r[1]], width/8), width)
		grow(1, 0)
	case "vldhbc":
		v := s.read(s.a[r[2]], 16)
		for i := range uint(8) {
			to := s.q[r[i/4]]
			for k := range uint(2) {
				to = with(to, 16*(2*(i%4)+k), 16, field(v, 16*i, 16))
			}
			s.q[r[i/4]] = to
		}
		grow(2, 16)
	case "ld", "st":
		switch parts[1] {
		case "qr":
			at := s.a[r[1]] + uint32(r[2])
			if parts[0] == "ld" {
				s.q[r[0]] = s.read(at, 16)
			} else {
				s.write(at, 16, s.q[r[0]])
			}
			return true
		case "128": // usar
			s.sarB = uint(s.a[r[1]] % 16)
			s.q[r[0]] = s.read(s.a[r[1]], 16)
			grow(1, 0)
			return true
		case "accx":
			if parts[0] == "ld" {
				s.accx = field(s.read(s.a[r[0]], 8), 0, 40)
			} else {
				s.write(s.a[r[0]], 8, s.accx)
			}
		default: // qacc_l, qacc_h
			at, n := uint(0), uint(16)
			if parts[1] == "qacc_h" {
				at = 160
			}
			if parts[2] == "h" {
				at, n = at+128, 4
			}
			if parts[0] == "ld" {
				s.qacc = with(s.qacc, at, 8*n, s.read(s.a[r[0]], n))
			} else {
				s.write(s.a[r[0]], n, field(s.qacc, at, 8*n))
			}
		}
		grow(0, 0)
	case "mv":
		s.q[r[0]] = s.q[r[1]]
	case "ldf", "stf":
		n := 4
		if parts[1] == "64" {
			n = 2
		}
		at := s.a[r[n]] &^ uint32(4*n-1)
		for i := range n {
			f := &s.f[r[n-1-i]]
			if parts[0] == "ldf" {
				*f = uint32(s.read(at+uint32(4*i), 4).Uint64())
			} else {
				s.write(at+uint32(4*i), 4, number(int64(*f)))
			}
		}
		grow(n, 0)
	case "ldxq", "stxq":
		index := extended(s.q[r[1]], uint(16*r[4]), 16, true).Int64()
		at := s.a[r[2]] + uint32(4*index)
		if parts[0] == "ldxq" {
			s.q[r[0]] = with(s.q[r[0]], uint(32*r[3]), 32, s.read(at, 4))
		} else {
			s.write(at, 4, field(s.q[r[0]], uint(32*r[3]), 32))
		}
	case "ldqa":
		s.spread(parts[1], s.read(s.a[r[0]], 16))
		grow(0, 0)
	case "mov":
		s.spread(parts[1], s.q[r[0]])
	case "src":
		switch {
		case last == "q":
			s.q[r[0]] = s.funnelled(r[1], r[2])
		case last == "qup":
			z := s.funnelled(r[1], r[2])
			s.q[r[1]] = s.q[r[2]]
			s.q[r[0]] = z
		default: // q.ld
			z := s.funnelled(r[3], r[4])
			s.q[r[0]] = s.read(s.a[r[1]], 16)
			s.q[r[3]] = z
			grow(1, 0)
		}
	case "srcq":
		s.write(s.a[r[2]], 16, s.funnelled(r[0], r[1]))
		grow(2, 16)
	case "slci", "srci", "slcxxp", "srcxxp":
		n := uint(0)
		if strings.HasSuffix(parts[0], "i") {
			n = uint(r[2])
		} else {
			n = uint(s.a[r[2]] % 16)
			s.a[r[2]] += s.a[r[3]]
		}
		pair := with(s.q[r[1]], 128, 128, s.q[r[0]])
		if parts[0][1] == 'l' {
			pair = field(new(big.Int).Lsh(pair, 8*(n+1)), 0, 256)
		} else {
			pair.Rsh(pair, 8*(n+1))
		}
		s.q[r[1]], s.q[r[0]] = field(pair, 0, 128), field(pair, 128, 128)
	case "vadds", "vsubs", "vmul", "vmax", "vmin", "vcmp":
		kind := parts[1]
		if parts[0] == "vcmp" {
			kind = parts[2]
		}
		width, sign := kindOf(kind)
		d, x, y := 0, 1, 2
		if last == "incp" {
			d, x, y = 2, 3, 4
		}
		z := lanewise(s.q[r[x]], s.q[r[y]], width, sign, func(a, b *big.Int) *big.Int {
			c := a.Cmp(b)
			holds := map[string]bool{"eq": c == 0, "lt": c < 0, "gt": c > 0}
			switch parts[0] {
			case "vadds":
				return limit(a.Add(a, b), width, true)
			case "vsubs":
				return limit(a.Sub(a, b), width, true)
			case "vmul":
				return a.Rsh(a.Mul(a, b), s.sar)
			case "vmax":
				if c > 0 {
					return a
				}
				return b
			case "vmin":
				if c < 0 {
					return a
				}
				return b
			}
			if holds[parts[1]] {
				return number(-1)
			}
			return number(0)
		})
		if strings.HasSuffix(name, "ld.incp") {
			s.q[r[0]] = s.read(s.a[r[1]], 16)
		} else if strings.HasSuffix(name, "st.incp") {
			s.write(s.a[r[1]], 16, s.q[r[0]])
		}
		s.q[r[d]] = z
		if last == "incp" {
			grow(1, 16)
		}
	case "vrelu", "vprelu":
		width, _ := kindOf(parts[1])
		x, shift := r[0], uint(s.a[r[2]])
		if parts[0] == "vprelu" {
			x, shift = r[1], uint(s.a[r[3]])
		}
		shift %= 4 * width
		by := field(number(int64(s.a[r[1]])), 0, width)
		other := repeated(by, width)
		if parts[0] == "vprelu" {
			other = s.q[r[2]]
		}
		s.q[r[0]] = lanewise(s.q[x], other, width, true, func(a, b *big.Int) *big.Int {
			if a.Sign() > 0 {
				return a
			}
			return a.Rsh(a.Mul(a, b), shift)
		})
	case "andq":
		s.q[r[0]] = new(big.Int).And(s.q[r[1]], s.q[r[2]])
	case "orq":
		s.q[r[0]] = new(big.Int).Or(s.q[r[1]], s.q[r[2]])
	case "xorq":
		s.q[r[0]] = new(big.Int).Xor(s.q[r[1]], s.q[r[2]])
	case "notq":
		s.q[r[0]] = field(new(big.Int).Not(s.q[r[1]]), 0, 128)
	case "vsr", "vsl":
		s.q[r[0]] = lanewise(s.q[r[1]], s.q[r[1]], 32, true, func(a, _ *big.Int) *big.Int {
			if parts[0] == "vsl" {
				return a.Lsh(a, s.sar)
			}
			return a.Rsh(a, s.sar)
		})
	case "vzip", "vunzip":
		width, _ := kindOf(parts[1])
		n := 128 / width
		pair := with(s.q[r[0]], 128, 128, s.q[r[1]])
		to := new(big.Int)
		for i := range n { // element i of either half, or of the even and odd ones
			for half := range uint(2) {
				apart, together := half*n+i, 2*i+half
				if parts[0] == "vzip" {
					to = with(to, together*width, width, field(pair, apart*width, width))
				} else {
					to = with(to, apart*width, width, field(pair, together*width, width))
				}
			}
		}
		s.q[r[0]], s.q[r[1]] = field(to, 0, 128), field(to, 128, 128)
	case "movi":
		if last == "a" {
			s.a[r[1]] = uint32(field(s.q[r[0]], uint(32*r[2]), 32).Uint64())
		} else {
			s.q[r[0]] = with(s.q[r[0]], uint(32*r[2]), 32, number(int64(s.a[r[1]])))
		}
	case "vmulas", "vsmulas":
		s.macs(parts, name, r, grow)
	case "zero":
		switch parts[1] {
		case "q":
			s.q[r[0]] = number(0)
		case "accx":
			s.accx = number(0)
		default:
			s.qacc = number(0)
		}
	case "srs":
		v := extended(s.accx, 0, 40, true)
		v.Rsh(v, uint(s.a[r[1]]%64))
		s.accx = field(v, 0, 40)
		s.a[r[0]] = uint32(field(limit(v, 32, true), 0, 32).Uint64())
	case "srcmb":
		width, _ := kindOf(parts[1])
		w := width / 8 * 20
		z := new(big.Int)
		for i := range 128 / width {
			v := extended(s.qacc, i*w, w, true)
			v.Rsh(v, uint(s.a[r[1]])%(4*width))
			s.qacc = with(s.qacc, i*w, w, v)
			z = with(z, i*width, width, limit(v, width, true))
		}
		s.q[r[0]] = z
	case "rur", "wur":
		return s.user(parts[0] == "rur", parts[1], r[0])
	default:
		return false
	}
	return true
}

func (s *slow) macs(parts []string, name string, r []int, grow func(at, width int)) {
	kind, into := parts[1], parts[2]
	width, _ := kindOf(kind)
	loads := strings.Contains(name, ".ld")
	x := 0
	if loads {
		x = 2
		if strings.Contains(name, ".ip") || strings.Contains(name, ".xp") {
			x = 3
		}
	}
	other := s.q[r[x+1]]
	if parts[0] == "vsmulas" {
		other = repeated(field(other, uint(r[x+2])*width, width), width)
	}
	s.product(into, kind, s.q[r[x]], other)
	if !loads {
		return
	}
	var shifted *big.Int
	if strings.HasSuffix(name, ".qup") {
		shifted = s.funnelled(r[x+2], r[x+3])
	}
	if parts[3] == "ldbc" {
		s.q[r[0]] = repeated(s.read(s.a[r[1]], width/8), width)
		grow(1, int(width/8))
	} else {
		s.q[r[0]] = s.read(s.a[r[1]], 16)
		grow(1, 16)
	}
	if shifted != nil {
		s.q[r[x+2]] = shifted
	}
}

// user reads or writes a user register.
func (s *slow) user(read bool, which string, a int) bool {
	x, at, width := &s.accx, uint(0), uint(32)
	switch {
	case which == "sar_byte":
		if read {
			s.a[a] = uint32(s.sarB)
		} else {
			s.sarB = uint(s.a[a] % 16)
		}
		return true
	case which == "accx_0":
	case which == "accx_1":
		at, width = 32, 8
	default:
		x = &s.qacc
		at = uint(which[len(which)-1]-'0') * 32
		if strings.HasPrefix(which, "qacc_h") {
			at += 160
		}
	}
	if read {
		s.a[a] = uint32(field(*x, at, width).Uint64())
	} else {
		*x = with(*x, at, width, number(int64(s.a[a])))
	}
	return true
}
