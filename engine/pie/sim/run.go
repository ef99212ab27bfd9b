package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
)

// Result is what a call gave and what it cost.
type Result struct {
	Return       uint32 // a2 at the end
	Cycles       uint64 // from the caller's call8 on
	Instructions uint64
	Stalls       Stalls
}

// Stalls are cycles in which no instruction started, by what was waited for. Together with the instructions they are the
// cycles of a call.
type Stalls struct {
	Vector      uint64 `json:"vector"`      // a q register
	Accumulator uint64 `json:"accumulator"` // ACCX or QACC
	Word        uint64 `json:"word"`        // an a register that was loaded or multiplied, or SAR
	Float       uint64 `json:"float"`       // an f register or a flag
	Store       uint64 `json:"store"`       // room for a store of 128 bits
	Branch      uint64 `json:"branch"`      // the target of a taken branch, a jump, a call or a return
	Loop        uint64 `json:"loop"`        // zero-overhead loops: set-up, and rounds of tiny bodies
}

// Total is their sum.
func (s Stalls) Total() uint64 {
	return s.Vector + s.Accumulator + s.Word + s.Float + s.Store + s.Branch + s.Loop
}

// What instructions cost beside one cycle; the documentation of the package says why.
const (
	branchCost  = 2
	loopCost    = 2
	tinyLoop    = 3 // instructions
	tinyTenths  = 9
	storeTenths = 6
	out         = int32(-1)
	outLink     = 0x80000000 | codeBase&0x3fffffff - 4
)

// Call runs a function as if a windowed call8 had called it: the first six arguments are in a2 to a7, others on the
// stack. It returns a [*Trap] where the program did what no kernel may do.
func (m *Machine) Call(ctx context.Context, p *Program, function string, args ...uint32) (Result, error) {
	start, ok := p.labels[function]
	if !ok || !slices.Contains(p.globals, function) {
		return Result{}, fmt.Errorf("%s has no global function %q", p.name, function)
	}
	m.reset(p, args)
	m.pc = start
	if int(start) >= len(p.code) || p.source[start].Mnemonic != "entry" {
		return Result{}, m.trap("a function must begin with entry")
	}
	m.now = 1 + branchCost // the call
	m.stalls.Branch = branchCost
	n, err := m.run(ctx)
	if err != nil {
		return Result{}, err
	}
	return Result{Return: m.a[2], Cycles: m.now, Instructions: n + 1, Stalls: m.stalls}, nil
}

// reset makes the state before a call: a caller's window whose registers from a8 on hold what call8 passes.
func (m *Machine) reset(p *Program, args []uint32) {
	if m.stack == nil {
		m.stack = make([]byte, stackMax)
	}
	for i := range m.stack {
		m.stack[i] = 0xa5
	}
	m.p, m.err, m.done, m.loops, m.fine, m.latest, m.extra = p, nil, false, 0, 0, 0, 0
	m.stalls, m.ready, m.init, m.frames = Stalls{}, [resCount]uint64{}, state{}, m.frames[:0]
	m.sar, m.sarByte, m.accx, m.b = 0, 0, 0, 0
	m.loopEnd = -1
	m.a = [16]uint32{1: stackTop, 8: outLink}
	m.init[0] = 1<<1 | 1<<8
	m.spare = m.spare[:0]
	for i, v := range args {
		if i < 6 {
			m.a[10+i] = v
			m.init[0] |= 1 << (10 + i)
			continue
		}
		m.spare = binary.LittleEndian.AppendUint32(m.spare, v)
	}
	m.calling = true
}

// run executes until the function returns, and counts instructions.
func (m *Machine) run(ctx context.Context) (uint64, error) {
	code := m.p.code
	count := uint64(0)
	for {
		if uint(m.pc) >= uint(len(code)) {
			return count, m.trap("runs off the end of the file; end the function with retw")
		}
		o := &code[m.pc]
		if m.calling && m.p.source[m.pc].Mnemonic != "entry" {
			return count, m.trap("a windowed call must reach an entry")
		}
		if o.needs[0]&^m.init[0]|o.needs[1]&^m.init[1] != 0 {
			return count, m.trap(fmt.Sprintf("reads %v, which was never written", o.needs.minus(m.init)))
		}
		stall := uint64(0)
		if m.latest > m.now {
			stall = m.wait(o)
		}
		if m.Trace != nil {
			m.Trace(Step{int(m.pc), m.p.source[m.pc], m.now, stall})
		}
		m.next = m.pc + 1
		o.run(m, o)
		if m.err != nil {
			return count, m.err
		}
		m.init[0] |= o.gives[0]
		m.init[1] |= o.gives[1]
		for _, d := range o.defs[:o.ndefs] {
			t := m.now + uint64(d.at) + 1
			m.ready[d.res] = t
			if d.at > 1 {
				m.latest = max(m.latest, t-1)
			}
		}
		m.now++
		count++
		if m.extra > 0 {
			m.now += m.extra
			m.extra = 0
		}
		if o.tenths > 0 {
			m.stalls.Store += m.tenths(uint64(o.tenths))
		}
		if m.done {
			return count, nil
		}
		if m.next == m.loopEnd && m.loops > 0 && m.next == m.pc+1 {
			m.loops--
			m.next = m.loopAt
			if m.tiny {
				m.stalls.Loop += m.tenths(tinyTenths)
			}
		}
		m.pc = m.next
		if count&0xffff == 0 && ctx.Err() != nil {
			return count, ctx.Err()
		}
		if count >= m.Budget {
			return count, m.trap(fmt.Sprintf("still running after %d instructions; is there a loop without end?", m.Budget))
		}
	}
}

// tenths adds parts of a cycle, and returns the whole cycles that came of it.
func (m *Machine) tenths(n uint64) uint64 {
	m.fine += n
	whole := m.fine / 10
	m.fine %= 10
	m.now += whole
	return whole
}

// wait lets time pass until what the op uses is there.
func (m *Machine) wait(o *op) uint64 {
	until, why := m.now, 0
	for _, u := range o.uses[:o.nuses] {
		if t := m.ready[u.res]; t > until+uint64(u.at) {
			until, why = t-uint64(u.at), int(u.res)
		}
	}
	n := until - m.now
	m.now = until
	switch {
	case n == 0:
	case why < resF, why >= resSar:
		m.stalls.Word += n
	case why < resQ:
		m.stalls.Float += n
	case why < resAccx:
		m.stalls.Vector += n
	default:
		m.stalls.Accumulator += n
	}
	return n
}

// jump goes to an instruction, as all taken branches do.
func (m *Machine) jump(to int32) {
	m.next = to
	m.extra += branchCost
	m.stalls.Branch += branchCost
	if to == m.loopEnd && m.loops > 0 {
		m.fail("a branch to the end of the loop leaves it with %d rounds to go; branch to a nop before the end", m.loops)
	}
}

// codeAt is the instruction at an address.
func (m *Machine) codeAt(address uint32) int32 {
	if at := address - codeBase; at < uint32(len(m.p.starts)) && m.p.starts[at] >= 0 {
		return m.p.starts[at]
	}
	m.fail("goes to %#08x, where no instruction of this file starts", address)
	return m.pc
}

func runEntry(m *Machine, o *op) {
	if !m.calling {
		m.fail("the code before runs into this function; end it with retw")
		return
	}
	m.calling = false
	f := frame{bottom: m.a[1], init: m.init[0] & 0xff, link: m.a[8], back: out}
	copy(f.a[:], m.a[:8])
	if len(m.frames) > 0 {
		f.back = m.codeAt(m.a[8]&0x3fffffff | codeBase&0xc0000000)
	}
	room := uint32(o.imm)
	if room < 16 || uint64(m.a[1])-uint64(room) < stackTop-stackMax {
		m.fail("a frame of %d bytes; it must have 16 at least, and the stack has %d", room, stackMax)
		return
	}
	sp := m.a[1] - room
	copy(m.a[:8], m.a[8:])
	m.a[1] = sp
	m.init[0] = m.init[0]&^0xffff | m.init[0]>>8&0xff | 2
	for i := 8; i < 16; i++ {
		m.a[i] = 0xdeadbeef
	}
	m.clearWords()
	m.frames = append(m.frames, f)
}

// clearWords forgets when the a registers are ready, as their names change.
func (m *Machine) clearWords() {
	for i := range 16 {
		m.ready[i] = 0
	}
}

func runRetw(m *Machine, _ *op) {
	f := m.frames[len(m.frames)-1]
	if m.a[0] != f.link {
		m.fail("returns to %#08x, not to its caller: a0 was changed", m.a[0])
		return
	}
	m.frames = m.frames[:len(m.frames)-1]
	if f.back == out {
		m.done = true
		m.extra += branchCost
		m.stalls.Branch += branchCost
		return
	}
	copy(m.a[8:], m.a[:8])
	copy(m.a[:8], f.a[:])
	m.init[0] = m.init[0]&^0xffff | m.init[0]&0xff<<8 | f.init
	m.clearWords()
	m.jump(f.back)
}

func (m *Machine) returnAddress() uint32 { return m.p.code[m.pc].address + uint32(m.p.code[m.pc].size) }

func runCall8(m *Machine, o *op) {
	m.call8(o.target)
}

func (m *Machine) call8(to int32) {
	if len(m.frames) == 100 {
		m.fail("calls go 100 deep; is there a recursion without end?")
		return
	}
	if f := &m.frames[len(m.frames)-1]; f.bottom-m.a[1] < 32 {
		m.fail("calls from a frame of %d bytes; windows need 32 in a function that calls", f.bottom-m.a[1])
		return
	}
	m.a[8] = 0x80000000 | m.returnAddress()&0x3fffffff
	m.init[0] |= 1 << 8
	m.calling = true
	m.jump(to)
}

func runCall0(m *Machine, o *op) { m.call0(o.target) }

func (m *Machine) call0(to int32) {
	m.a[0] = m.returnAddress()
	m.jump(to)
}

func runRet(m *Machine, _ *op) { m.jump(m.codeAt(m.a[0])) }

// startLoop begins a zero-overhead loop of some rounds. skip: a branch past it.
func (m *Machine) startLoop(o *op, rounds uint32, skip bool) {
	if skip {
		m.loops = 0
		m.jump(o.target)
		return
	}
	m.loops, m.loopAt, m.loopEnd = rounds-1, m.pc+1, o.target
	m.tiny = o.target-m.pc-1 <= tinyLoop
	m.extra += loopCost
	m.stalls.Loop += loopCost
}
