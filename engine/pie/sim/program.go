package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Instruction is one instruction of a program after macro expansion.
type Instruction struct {
	File     string
	Line     int // of a macro's body where it comes from one
	Mnemonic string
	Operands []string
}

// String writes the instruction as in a source file.
func (i Instruction) String() string {
	if len(i.Operands) == 0 {
		return i.Mnemonic
	}
	return i.Mnemonic + " " + strings.Join(i.Operands, ", ")
}

// node is what a program is made of, in the order of the source.
type node struct {
	place
	kind  nodeKind
	name  string // of a label
	align int
	ins   Instruction
}

type nodeKind int

const (
	nodeInstruction nodeKind = iota
	nodeLabel
	nodeAlign
)

const (
	codeBase = 0x40378000
	dataBase = 0x3fc90000
	mostCode = 1 << 16 // bytes
)

// Program is an assembled file. Machines may run it at the same time.
type Program struct {
	name     string
	nodes    []node
	symbols  map[string]int64 // as they are at the end of the file
	globals  []string
	labels   map[string]int32 // index of the instruction that follows
	literals []uint32
	places   map[string]int // of literals
	code     []op
	source   []Instruction
	starts   []int32 // index of the instruction by address, -1: none starts there
}

// Functions are the global symbols.
func (p *Program) Functions() []string { return slices.Clone(p.globals) }

// Range is where a function's instructions are among [Program.Instructions]: from its label to that of the next function of
// the file. Without such a function both are 0.
func (p *Program) Range(function string) (from, to int) {
	start, ok := p.labels[function]
	if !ok || !slices.Contains(p.globals, function) {
		return 0, 0
	}
	from, to = int(start), len(p.source)
	for _, other := range p.globals {
		if at := int(p.labels[other]); at > from {
			to = min(to, at)
		}
	}
	return from, to
}

// Instructions are all instructions after macro expansion, in order.
func (p *Program) Instructions() []Instruction { return slices.Clone(p.source) }

// With is the program with instruction i replaced by another one, all addresses computed anew.
func (p *Program) With(i int, mnemonic string, operands ...string) (*Program, error) {
	q := *p
	q.nodes, q.places, q.literals = slices.Clone(p.nodes), maps.Clone(p.places), slices.Clone(p.literals)
	n := 0
	for k := range q.nodes {
		if q.nodes[k].kind != nodeInstruction {
			continue
		}
		if n == i {
			q.nodes[k].ins.Mnemonic, q.nodes[k].ins.Operands = mnemonic, operands
			return &q, q.assemble()
		}
		n++
	}
	return nil, fmt.Errorf("%s: there is no instruction %d", p.name, i)
}

// assemble decodes the nodes, gives addresses and resolves labels.
func (p *Program) assemble() error {
	p.code, p.source, p.labels = nil, nil, map[string]int32{}
	var names []string
	var places []place
	type local struct {
		number string
		at     int32
	}
	var locals []local
	address := uint32(codeBase)
	for k := range p.nodes {
		n := &p.nodes[k]
		switch n.kind {
		case nodeLabel:
			if isDigit(n.name[0]) {
				locals = append(locals, local{n.name, int32(len(p.code))})
				continue
			}
			if _, ok := p.labels[n.name]; ok {
				return n.errorf(`label %q is there already; give one of them another name, in a macro with \@`, n.name)
			}
			p.labels[n.name] = int32(len(p.code))
		case nodeAlign:
			address = (address + uint32(n.align) - 1) / uint32(n.align) * uint32(n.align)
		case nodeInstruction:
			o, label, err := p.instruction(n)
			if err != nil {
				return n.errorf("%v", err)
			}
			o.address = address
			if n.ins.Mnemonic == "entry" && address%4 != 0 {
				return n.errorf("entry is not at a multiple of 4; put .align 4 before its label")
			}
			address += uint32(o.size)
			if address-codeBase > mostCode {
				return n.errorf("more than %d bytes of code; split the file", mostCode)
			}
			p.code = append(p.code, o)
			p.source = append(p.source, n.ins)
			names, places = append(names, label), append(places, n.place)
		}
	}
	p.starts = make([]int32, address-codeBase)
	for i := range p.starts {
		p.starts[i] = -1
	}
	for i := range p.code {
		p.starts[p.code[i].address-codeBase] = int32(i)
	}
	for i := range p.code {
		o := &p.code[i]
		name := names[i]
		if name == "" {
			continue
		}
		fail := places[i].errorf
		if p.source[i].Mnemonic == "l32r" {
			if _, ok := p.places[name]; !ok {
				return fail("there is no literal %q; put .literal %s, VALUE before", name, name)
			}
			o.target = int32(p.places[name])
			continue
		}
		target, ok := p.labels[name]
		if number := name[:len(name)-1]; isDigit(name[0]) && (strings.HasSuffix(name, "b") || strings.HasSuffix(name, "f")) {
			for _, l := range locals {
				if l.number != number {
					continue
				}
				if back := l.at <= int32(i); back && strings.HasSuffix(name, "b") {
					target, ok = l.at, true
				} else if !back && strings.HasSuffix(name, "f") {
					target, ok = l.at, true
					break
				}
			}
		}
		if !ok {
			return fail("there is no label %q", name)
		}
		o.target = target
		to := address
		if int(target) < len(p.code) {
			to = p.code[target].address
		}
		if err := p.reach(i, to); err != nil {
			return fail("%v", err)
		}
	}
	return p.checkLoops(places)
}

// instruction decodes a node. movi of a constant that does not fit becomes what the assembler makes of it.
func (p *Program) instruction(n *node) (op, string, error) {
	name := n.ins.Mnemonic
	if name == "movi" && len(n.ins.Operands) == 2 {
		if v, err := evaluate(n.ins.Operands[1], p.symbols); err == nil && (v < -2048 || v > 2047) && v >= -1<<31 && v < 1<<32 {
			literal := fmt.Sprintf(".movi.%d", uint32(v))
			if _, ok := p.places[literal]; !ok {
				p.places[literal] = len(p.literals)
				p.literals = append(p.literals, uint32(v))
			}
			o, _, err := specs["l32r"].decode([]string{n.ins.Operands[0], literal}, nil)
			o.target = int32(p.places[literal])
			return o, "", err
		}
	}
	s := specs[name]
	if s == nil {
		return op{}, "", fmt.Errorf("unknown instruction %q%s", name, nearest(name))
	}
	o, label, err := s.decode(n.ins.Operands, p.symbols)
	return o, label, err
}

// nearest suggests a mnemonic.
func nearest(name string) string {
	best, least := "", 3
	for known := range specs {
		if d := distance(name, known); d < least || d == least && best != "" && known < best {
			best, least = known, d
		}
	}
	if best == "" {
		return "; package sim knows the instructions that docs/pie.md lists"
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is the number of letters to insert, remove or change, for short names.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return 100
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := last
			if a[i] != b[j] {
				d++
			}
			last = row[j+1]
			row[j+1] = min(d, row[j]+1, last+1)
		}
	}
	return row[len(b)]
}

// reach checks that a label is near enough.
func (p *Program) reach(i int, to uint32) error {
	s := specs[p.source[i].Mnemonic]
	for k := range s.form {
		r := reaches[s.form[k].kind]
		if !s.form[k].isLabel() {
			continue
		}
		d := int64(to) - int64(p.code[i].address)
		if s.form[k].kind == "call" {
			if to%4 != 0 {
				return fmt.Errorf("%s wants a label at a multiple of 4; put .align 4 before it", s.name)
			}
			d = int64(to) - int64(p.code[i].address&^3)
		}
		if d < r[0] || d > r[1] {
			if s.form[k].kind == "loop" {
				return fmt.Errorf("the body of the loop has %d bytes; it may have 1 to 256, and its end comes after it", d-3)
			}
			return fmt.Errorf("the label is %d bytes away and %s reaches %d to %d; turn the condition round, past a j to the label", d, s.name, r[0], r[1])
		}
	}
	return nil
}

// checkLoops refuses loops within loops, and calls and returns within them.
func (p *Program) checkLoops(places []place) error {
	for i := range p.code {
		if !strings.HasPrefix(p.source[i].Mnemonic, "loop") {
			continue
		}
		for k := i + 1; k < int(p.code[i].target); k++ {
			switch m := p.source[k].Mnemonic; {
			case strings.HasPrefix(m, "loop"):
				return places[k].errorf("%s within the loop of line %d; there is one loop at a time: use a branch", m, p.source[i].Line)
			case strings.HasPrefix(m, "call"), strings.HasPrefix(m, "ret"), m == "entry":
				return places[k].errorf("%s within the loop of line %d; put it outside, or use a branch for the loop", m, p.source[i].Line)
			}
		}
	}
	return nil
}
