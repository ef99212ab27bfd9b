package sim

import (
	"fmt"

	"github.com/chiplm/chiplm/engine/pie"
)

// Machine is one core with its registers and the memory that was mapped. It runs one call at a time; machines are
// independent of each other.
type Machine struct {
	// Budget is the number of instructions after which a call is ended as endless.
	Budget uint64
	// Trace is called for each instruction before it runs, if it is set.
	Trace func(Step)

	a       [16]uint32
	f       [16]uint32
	b       uint16
	q       [8][16]byte
	accx    uint64 // 40 bits
	qacc    qacc
	sar     uint32
	sarByte uint32
	init    state

	p       *Program
	pc      int32
	next    int32
	loopAt  int32 // of the zero-overhead loop: its first instruction and the one after its last
	loopEnd int32
	loops   uint32 // more rounds to go
	tiny    bool   // the loop's body is so short that each round costs
	frames  []frame
	calling bool // a windowed call has been made, entry comes
	done    bool
	err     error

	now    uint64 // cycles
	fine   uint64 // tenths of a cycle beside now
	extra  uint64 // cycles that the instruction at hand costs beside one
	latest uint64 // when all results are there
	ready  [resCount]uint64
	stalls Stalls

	regions []region
	pages   []uint8 // index of the region of each page, plus one
	stack   []byte
	spare   []byte // what calls have on the stack before entry
}

// New is a machine with nothing mapped.
func New() *Machine {
	return &Machine{Budget: 1 << 30}
}

// Step is one instruction of a trace.
type Step struct {
	Index       int // into [Program.Instructions]
	Instruction Instruction
	Cycle       uint64 // when it starts, stalls done
	Stall       uint64 // cycles it waited
}

// frame is what a windowed call leaves behind.
type frame struct {
	a      [8]uint32
	init   uint64
	back   int32 // where to go on; -1: out of the program
	link   uint32
	bottom uint32 // the stack pointer of the caller: below it are 16 bytes for its window
}

const (
	pageBits = 12
	stackTop = dataBase - 2<<pageBits
	stackMax = 16 << 10
)

type region struct {
	name   string
	base   uint32
	data   []byte
	access pie.Access
}

// Map gives the machine a buffer and says at which address: a multiple of 64, and not of 128. The machine works on data
// itself. Between buffers lie 4 KB at least that nothing is mapped to.
func (m *Machine) Map(name string, data []byte, access pie.Access) uint32 {
	return m.MapAt(name, data, access, 64)
}

// MapAt maps a buffer at an address that is so many bytes above a multiple of 4096.
func (m *Machine) MapAt(name string, data []byte, access pie.Access, offset int) uint32 {
	if offset < 0 || offset >= 1<<pageBits {
		panic(fmt.Sprintf("an offset of %d within a page of %d", offset, 1<<pageBits))
	}
	if len(m.regions) == 250 {
		panic("more than 250 buffers in a machine")
	}
	base := dataBase + uint32(len(m.pages)+1)<<pageBits + uint32(offset)
	if uint64(base)+uint64(len(data)) > codeBase {
		panic("buffers of more memory than there are addresses")
	}
	m.regions = append(m.regions, region{name, base, data, access})
	n := (offset + len(data) + 1<<pageBits - 1) >> pageBits
	m.pages = append(m.pages, 0) // the gap
	for range n {
		m.pages = append(m.pages, uint8(len(m.regions)))
	}
	return base
}

// Unmap takes all buffers away.
func (m *Machine) Unmap() { m.regions, m.pages = m.regions[:0], m.pages[:0] }

// at is the memory of an access, or nil after a trap.
func (m *Machine) at(address uint32, n uint32, access pie.Access) []byte {
	page := (address - dataBase) >> pageBits
	if page < uint32(len(m.pages)) {
		if i := m.pages[page]; i > 0 {
			r := &m.regions[i-1]
			off := uint64(address) - uint64(r.base)
			if address >= r.base && off+uint64(n) <= uint64(len(r.data)) && r.access&access != 0 {
				return r.data[off : off+uint64(n)]
			}
		}
	}
	return m.slow(address, n, access)
}

// slow is an access to the stack, or one that traps.
func (m *Machine) slow(address, n uint32, access pie.Access) []byte {
	what, wants := "reads", "read"
	if access == pie.Write {
		what, wants = "writes", "written"
	}
	if end := stackTop + uint32(len(m.spare)); address >= stackTop-stackMax && uint64(address)+uint64(n) <= uint64(end) && len(m.frames) > 0 {
		f := &m.frames[len(m.frames)-1]
		sp := m.a[1]
		switch {
		case address < sp:
			m.fail("%s %d bytes at %#08x, below the stack pointer %#08x; ask entry for more room", what, n, address, sp)
			return nil
		case address+n > f.bottom-16 && address < f.bottom:
			m.fail("%s %d bytes at %#08x, within the 16 bytes below %#08x where the caller's window is saved; ask entry for more room",
				what, n, address, f.bottom)
			return nil
		case address < stackTop:
			return m.stack[address-(stackTop-stackMax):][:n]
		}
		return m.spare[address-stackTop:][:n]
	}
	best, distance, where := -1, uint64(1)<<40, ""
	for i := range m.regions {
		r := &m.regions[i]
		lo, hi := uint64(r.base), uint64(r.base)+uint64(len(r.data))
		from, to := uint64(address), uint64(address)+uint64(n)
		switch {
		case from >= lo && to <= hi:
			m.fail("%s %d bytes at %#08x, byte %d of %q, which may not be %s", what, n, address, from-lo, r.name, wants)
			return nil
		case to > hi && from >= lo:
			if d := to - hi; d < distance {
				best, distance, where = i, d, "past the end"
			}
		case from < lo:
			if d := lo - from; d < distance {
				best, distance, where = i, d, "before the start"
			}
		}
	}
	if best < 0 {
		m.fail("%s %d bytes at %#08x; nothing is mapped", what, n, address)
		return nil
	}
	r := &m.regions[best]
	m.fail("%s %d bytes at %#08x, %d bytes %s of %q (%d bytes at %#08x)", what, n, address, distance, where, r.name, len(r.data), r.base)
	return nil
}

// fail ends the call after the instruction at hand.
func (m *Machine) fail(format string, args ...any) {
	if m.err == nil {
		m.err = m.trap(fmt.Sprintf(format, args...))
	}
}

// Trap is what stopped a call.
type Trap struct {
	File        string
	Line        int
	Instruction string
	Reason      string
}

func (t *Trap) Error() string {
	return fmt.Sprintf("%s:%d: %s: %s", t.File, t.Line, t.Instruction, t.Reason)
}

func (m *Machine) trap(reason string) error {
	t := &Trap{File: m.p.name, Reason: reason}
	if int(m.pc) < len(m.p.source) {
		i := m.p.source[m.pc]
		t.File, t.Line, t.Instruction = i.File, i.Line, i.String()
	} else if n := len(m.p.source); n > 0 {
		t.Line, t.Instruction = m.p.source[n-1].Line, "after "+m.p.source[n-1].String()
	}
	return t
}
