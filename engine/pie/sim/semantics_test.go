package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/engine/pie"
)

// apart are the instructions that other tests have: they change more than registers and memory.
var apart = map[string]bool{"entry": true, "ret": true, "ret.n": true, "retw": true, "retw.n": true, "call0": true, "callx0": true,
	"call8": true, "callx8": true, "jx": true, "loop": true, "loopnez": true, "loopgtz": true, "l32r": true}

// TestInstructions holds each instruction of the table to a second definition, on random states with many extremes.
func TestInstructions(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	for _, name := range Mnemonics() {
		if apart[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, uint64(len(name))))
			for i := range rounds {
				if err := compareOnce(name, r); err != nil {
					t.Fatalf("round %d: %v", i, err)
				}
			}
		})
	}
}

// word draws a number, often an extreme.
func word(r *rand.Rand) uint32 {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return math.MaxUint32
	case 2:
		return 1 << 31
	case 3:
		return math.MaxInt32
	case 4:
		return uint32(r.IntN(64)) - 32
	}
	return r.Uint32() >> r.IntN(32)
}

// finite draws the bits of a float: of every size, with many halves, small integers, zeros and subnormals.
func finite(r *rand.Rand) uint32 {
	switch r.IntN(8) {
	case 0:
		return uint32(r.IntN(2)) << 31
	case 1:
		return r.Uint32() & 0x807fffff
	case 2, 3, 4:
		return math.Float32bits(float32(r.IntN(4096)-2048) / 64)
	case 5:
		return r.Uint32()&0x80ffffff | 0x4e000000
	}
	if v := r.Uint32(); v&0x7f800000 != 0x7f800000 {
		return v
	}
	return 0x3f800000
}

func randomVector(r *rand.Rand) (v vector) {
	kind := r.IntN(5)
	for i := range v {
		switch kind {
		case 0:
			v[i] = byte(r.Uint32())
		case 1:
			v[i] = 0x80
		case 2:
			v[i] = 0x7f
		case 3:
			v[i] = []byte{0, 0x7f, 0x80, 0xff, 1, byte(r.Uint32())}[r.IntN(6)]
		}
	}
	return v
}

func long(v []byte) *big.Int {
	high := slices.Clone(v)
	slices.Reverse(high)
	return new(big.Int).SetBytes(high)
}

// operandsFor draws operands; registers that the instruction writes differ from each other.
func operandsFor(s *spec, r *rand.Rand) (texts []string, values []int) {
	written := map[string]bool{}
	for i := range s.form {
		p := &s.form[i]
		if !p.isOperand() {
			continue
		}
		n := 0
		switch {
		case p.kind == "i":
			n = int(p.lo + p.step*r.Int64N((p.hi-p.lo)/p.step+1))
			texts = append(texts, fmt.Sprint(n))
		case constants[p.kind] != nil:
			n = int(constants[p.kind][r.IntN(len(constants[p.kind]))])
			texts = append(texts, fmt.Sprint(n))
		case p.isLabel():
			texts = append(texts, "target")
		default:
			most := 16
			if p.kind[0] == 'q' {
				most = 8
			}
			text := ""
			for {
				n = r.IntN(most)
				text = fmt.Sprintf("%c%d", p.kind[0], n)
				if p.def == 0 || !written[text] && text != "a1" {
					break
				}
			}
			written[text] = written[text] || p.def > 0
			texts = append(texts, text)
		}
		values = append(values, n)
	}
	return texts, values
}

func compareOnce(name string, r *rand.Rand) error {
	spec := specs[name]
	texts, values := operandsFor(spec, r)
	text := name + " " + strings.Join(texts, ", ")
	p, err := Parse("test.S", []byte(text+"\n.rept 12\nnop\n.endr\ntarget: nop\n"))
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	m := New()
	m.p, m.loopEnd, m.next = p, -1, 1
	arena := 32 << 10
	if strings.Contains(name, "xq") { // words that are chosen by 16 bits
		arena = 320 << 10
	}
	memory := make([]byte, arena)
	base := m.Map("memory", memory, pie.Read|pie.Write)
	slow := &slow{memory: make([]byte, arena), base: base}
	for i := range 16 {
		m.a[i], m.f[i] = word(r), finite(r)
	}
	address := -1
	place := 0
	for i := range spec.form { // the address is the first register of those that may be one
		q := &spec.form[i]
		if !q.isOperand() {
			continue
		}
		if q.kind == "a" && address < 0 && addresses(name, place) {
			address = values[place]
		} else if q.kind == "a" && address >= 0 && values[place] != address {
			m.a[values[place]] = uint32(r.IntN(4096)-2048) &^ 3 // what is added to it
		}
		place++
	}
	if address >= 0 {
		m.a[address] = base + uint32(arena/2) + uint32(r.IntN(4096))
		if !strings.HasPrefix(name, "ee.") {
			m.a[address] &^= 3
			if strings.HasSuffix(name, "x") && values[1] == values[2] {
				return nil // twice the address is nowhere
			}
		}
		window := memory[arena/2-8192:][:3*8192]
		for i := 0; i < len(window); i += 8 {
			binary.LittleEndian.PutUint64(window[i:], r.Uint64())
		}
		if !strings.Contains(name, "xq") && r.IntN(4) == 0 {
			v := randomVector(r)
			for i := range len(window) / 16 {
				copy(window[16*i:], v[:])
			}
		}
	}
	for i := range 8 {
		m.q[i] = randomVector(r)
		slow.q[i] = long(m.q[i][:])
	}
	m.b = uint16(r.Uint32())
	m.accx = randomAccx(r)
	slow.accx = new(big.Int).SetUint64(m.accx)
	var raw [40]byte
	for i := range 2 {
		v := randomVector(r)
		copy(raw[20*i:], v[:])
		copy(raw[20*i+16:], v[:4])
	}
	slow.qacc = long(raw[:])
	for half := range 2 {
		var w [5]uint32
		for i := range w {
			w[i] = uint32(field(slow.qacc, uint(160*half+32*i), 32).Uint64())
		}
		m.qacc.setHalf(half, w)
	}
	m.qacc.use(r.IntN(2) == 0)
	m.sar, m.sarByte = uint32(r.IntN(32)), uint32(r.IntN(16))
	if name == "sll" || name == "src" || name == "rsr.sar" {
		m.sar = uint32(r.IntN(33))
	}
	slow.a, slow.f, slow.b, slow.sar, slow.sarB = m.a, m.f, m.b, uint(m.sar), uint(m.sarByte)
	copy(slow.memory, memory)
	if strings.HasPrefix(name, "quo") || strings.HasPrefix(name, "rem") {
		if m.a[values[2]] == 0 {
			return nil // traps
		}
	}
	p.code[0].run(m, &p.code[0])
	taken, known := false, strings.Contains(name, "ee.") || strings.Contains(name, "ur.") || strings.HasSuffix(name, ".qr")
	if known {
		known = slow.vector(name, values)
	} else {
		taken, known = slow.scalar(name, values)
	}
	if !known {
		return fmt.Errorf("%s has no second definition", name)
	}
	if m.err != nil {
		return fmt.Errorf("%s: %w", text, m.err)
	}
	return slow.differs(m, memory, text, taken)
}

// addresses says whether the a register at a place of the operands is an address.
func addresses(name string, place int) bool {
	switch {
	case strings.HasPrefix(name, "ee.v") && !strings.Contains(name, "relu"):
		return true
	case strings.HasPrefix(name, "ee.ld"), strings.HasPrefix(name, "ee.st"), strings.HasPrefix(name, "ee.src"):
		return !strings.Contains(name, "xxp") && !strings.Contains(name, "srcmb")
	case name == "ld.qr", name == "st.qr":
		return true
	}
	short := strings.TrimSuffix(name, ".n")
	switch short {
	case "l8ui", "l16ui", "l16si", "l32i", "s8i", "s16i", "s32i", "lsi", "lsip", "lsx", "lsxp", "ssi", "ssip", "ssx", "ssxp":
		return place == 1
	}
	return false
}

func randomAccx(r *rand.Rand) uint64 {
	switch r.IntN(5) {
	case 0:
		return 0
	case 1:
		return 1<<39 - 1 - uint64(r.IntN(300000))
	case 2:
		return 1<<39 + uint64(r.IntN(300000))
	case 3:
		return 1<<40 - 1 - uint64(r.IntN(300000))
	}
	return r.Uint64() >> (24 + r.IntN(40))
}

func (s *slow) differs(m *Machine, memory []byte, text string, taken bool) error {
	for i := range 16 {
		if m.a[i] != s.a[i] {
			return fmt.Errorf("%s: a%d is %#x, want %#x", text, i, m.a[i], s.a[i])
		}
		if m.f[i] != s.f[i] {
			return fmt.Errorf("%s: f%d is %#x, want %#x", text, i, m.f[i], s.f[i])
		}
	}
	for i := range 8 {
		if got := long(m.q[i][:]); got.Cmp(s.q[i]) != 0 {
			return fmt.Errorf("%s: q%d is %x, want %x", text, i, got, s.q[i])
		}
	}
	var raw []byte
	for half := range 2 {
		for _, w := range m.qacc.half(half) {
			raw = append(raw, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
		}
	}
	switch {
	case new(big.Int).SetUint64(m.accx).Cmp(s.accx) != 0:
		return fmt.Errorf("%s: ACCX is %x, want %x", text, m.accx, s.accx)
	case long(raw).Cmp(s.qacc) != 0:
		return fmt.Errorf("%s: QACC is %x, want %x", text, long(raw), s.qacc)
	case m.b != s.b, uint(m.sar) != s.sar, uint(m.sarByte) != s.sarB:
		return fmt.Errorf("%s: flags %x, SAR %d, SAR_BYTE %d; want %x, %d, %d", text, m.b, m.sar, m.sarByte, s.b, s.sar, s.sarB)
	case string(memory) != string(s.memory):
		return fmt.Errorf("%s: memory differs", text)
	case taken != (m.next == 13):
		return fmt.Errorf("%s: goes to %d; taken: %v", text, m.next, taken)
	}
	return nil
}
