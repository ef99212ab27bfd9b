package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// spec is an instruction of the table. form lists its operands and what it uses beside them, separated by spaces:
//
//	a f b q     a register; of q also ql, qh: its low or high half, qw: the word that the next immediate names,
//	            qs: the word that holds the halfword which the last immediate names
//	i:LO:HI:STEP    an immediate
//	b4 b4u n15      one of some constants: of compared branches, of addi.n
//	to8 to12 to6 to18 call loop    a label, by the reach of the instruction
//	literal         the label of a literal
//	accx sar ...    implicit resources
//
// and after a register or resource <STAGE for a use, >STAGE for a definition; without a number stage 1.
type spec struct {
	name   string
	form   []part
	size   uint8
	run    func(m *Machine, o *op)
	tenths uint8 // of a cycle that the instruction costs beside one
	count  int   // operands that are written in the source
}

type part struct {
	kind         string
	use, def     uint8 // stages; 0: none
	lo, hi, step int64
}

// isOperand says that the part stands in the source.
func (p *part) isOperand() bool { _, ok := implicit[p.kind]; return !ok }

// isLabel says that the operand is a label of the code.
func (p *part) isLabel() bool { return reaches[p.kind] != [2]int64{} }

// reaches are the distances from an instruction that labels may have.
var reaches = map[string][2]int64{
	"to8":  {-124, 131},
	"to12": {-2044, 2051},
	"to6":  {4, 67},
	"to18": {-131068, 131075},
	"call": {-524284, 524288},
	"loop": {4, 259},
}

// constants are immediates that form no range.
var constants = map[string][]int64{
	"b4":  {-1, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32, 64, 128, 256},
	"b4u": {32768, 65536, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32, 64, 128, 256},
	"n15": {-1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
}

func parseForm(form string) []part {
	var parts []part
	for _, word := range strings.Fields(form) {
		var p part
		if strings.HasPrefix(word, "i:") {
			p.kind = "i"
			for i, v := range strings.Split(word[2:], ":") {
				n, err := strconv.ParseInt(v, 10, 64)
				if err != nil {
					panic(err) // a mistake in the table
				}
				*[]*int64{&p.lo, &p.hi, &p.step}[i] = n
			}
			parts = append(parts, p)
			continue
		}
		end := strings.IndexAny(word, "<>")
		if end < 0 {
			end = len(word)
		}
		p.kind = word[:end]
		for rest := word[end:]; rest != ""; {
			stage, n := uint8(1), 1
			if len(rest) > 1 && isDigit(rest[1]) {
				stage, n = rest[1]-'0', 2
			}
			if rest[0] == '<' {
				p.use = stage
			} else {
				p.def = stage
			}
			rest = rest[n:]
		}
		parts = append(parts, p)
	}
	return parts
}

// specs is the table of all instructions.
var specs = func() map[string]*spec {
	all := map[string]*spec{}
	for _, group := range [][]spec{baseSpecs(), floatSpecs(), vectorSpecs()} {
		for _, s := range group {
			if all[s.name] != nil {
				panic("twice in the table: " + s.name)
			}
			for i := range s.form {
				if s.form[i].isOperand() {
					s.count++
				}
			}
			all[s.name] = &s
		}
	}
	return all
}()

func instruction(name, form string, size uint8, run func(*Machine, *op)) spec {
	return spec{name: name, form: parseForm(form), size: size, run: run}
}

// op is an instruction ready to run.
type op struct {
	run         func(m *Machine, o *op)
	needs       state
	gives       state
	uses        [10]stage
	defs        [6]stage
	nuses       uint8
	ndefs       uint8
	r           [8]uint8 // registers by place; immediates have a place too
	imm, second int32    // the first and second immediate
	target      int32    // index of the instruction that the label names
	tenths      uint8
	size        uint8
	address     uint32
}

type stage struct{ res, at uint8 }

// registerNumber reads the name of a register of a kind; -1: it is none.
func registerNumber(kind, s string) int {
	s = strings.TrimPrefix(strings.ToLower(s), "$")
	if kind == "a" && s == "sp" {
		return 1
	}
	if len(s) < 2 || len(s) > 3 || s[0] != kind[0] || len(s) == 3 && s[1] == '0' {
		return -1
	}
	n, err := strconv.ParseUint(s[1:], 10, 8)
	if err != nil || n > 15 || kind[0] == 'q' && n > 7 {
		return -1
	}
	return int(n)
}

var kindNames = map[byte]string{'a': "a register a0 to a15", 'f': "a float register f0 to f15", 'b': "a flag b0 to b15",
	'q': "a vector register q0 to q7"}

// decode makes an op of operands; labels are resolved later. Returned is the label it names.
func (s *spec) decode(operands []string, symbols map[string]int64) (op, string, error) {
	o := op{run: s.run, size: s.size, tenths: s.tenths}
	if len(operands) != s.count {
		return o, "", fmt.Errorf("%s takes %d operands, not %d: %s", s.name, s.count, len(operands), s.usage())
	}
	label := ""
	var immediates []int64
	place := 0
	for i := range s.form {
		p := &s.form[i]
		if !p.isOperand() {
			continue
		}
		text := operands[place]
		switch {
		case p.kind == "i" || constants[p.kind] != nil:
			v, err := evaluate(text, symbols)
			if err != nil {
				return o, "", fmt.Errorf("operand %d of %s: %w", place+1, s.name, err)
			}
			if err := p.check(v); err != nil {
				return o, "", fmt.Errorf("operand %d of %s: %w", place+1, s.name, err)
			}
			immediates = append(immediates, v)
		case p.isLabel() || p.kind == "literal":
			if !isWord(text) {
				return o, "", fmt.Errorf("operand %d of %s is %q; it wants a label", place+1, s.name, text)
			}
			label = text
		default:
			n := registerNumber(p.kind[:1], text)
			if n < 0 {
				return o, "", fmt.Errorf("operand %d of %s is %q; it wants %s", place+1, s.name, text, kindNames[p.kind[0]])
			}
			o.r[place] = uint8(n)
		}
		place++
	}
	if s.name == "entry" && o.r[0] != 1 {
		return o, "", fmt.Errorf("operand 1 of entry is %q; it wants a1, the stack pointer", operands[0])
	}
	if len(immediates) > 0 {
		o.imm = int32(immediates[0])
	}
	if len(immediates) > 1 {
		o.second = int32(immediates[1])
	}
	return o, label, s.track(&o, immediates)
}

// check holds an immediate against its range.
func (p *part) check(v int64) error {
	if all := constants[p.kind]; all != nil {
		if !slices.Contains(all, v) {
			return fmt.Errorf("%d is not among %v", v, all)
		}
		return nil
	}
	if v < p.lo || v > p.hi || (v-p.lo)%p.step != 0 {
		if p.step == 1 {
			return fmt.Errorf("%d is out of range: %d to %d", v, p.lo, p.hi)
		}
		return fmt.Errorf("%d is out of range: %d to %d in steps of %d", v, p.lo, p.hi, p.step)
	}
	return nil
}

// track notes what the op reads and writes.
func (s *spec) track(o *op, immediates []int64) error {
	place := 0
	var written state
	for i := range s.form {
		p := &s.form[i]
		var res int
		var st state
		if im, ok := implicit[p.kind]; ok {
			res, st = im.res, im.state
		} else {
			n := int(o.r[place])
			place++
			switch p.kind[0] {
			case 'a':
				res, st = n, state{1 << n, 0}
			case 'f':
				res, st = resF+n, state{1 << (16 + n), 0}
			case 'b':
				if p.use == 0 && p.def == 0 {
					continue // b4
				}
				res, st = resB+n, state{0, 1 << n}
			case 'q':
				mask := uint64(15)
				switch p.kind {
				case "ql":
					mask = 3
				case "qh":
					mask = 12
				case "qw":
					mask = 1 << immediates[0]
				case "qs":
					mask = 1 << (immediates[1] / 2)
				}
				res, st = resQ+n, words(n, mask)
			default:
				continue
			}
		}
		if p.use > 0 {
			o.needs = o.needs.with(st)
			o.uses[o.nuses] = stage{uint8(res), p.use}
			o.nuses++
		}
		if p.def > 0 {
			if both := (state{written[0] & st[0], written[1] & st[1]}); both != (state{}) {
				return fmt.Errorf("%s would write %v twice; name two registers", s.name, both)
			}
			if p.kind == "a" && o.r[place-1] == 1 && s.name != "entry" {
				return fmt.Errorf("%s would write a1, the stack pointer; ask entry for the room", s.name)
			}
			written = written.with(st)
			o.gives = o.gives.with(st)
			o.defs[o.ndefs] = stage{uint8(res), p.def}
			o.ndefs++
		}
	}
	return nil
}

// usage shows the operands for messages.
func (s *spec) usage() string {
	var words []string
	for i := range s.form {
		p := &s.form[i]
		switch {
		case !p.isOperand():
		case p.kind == "i":
			words = append(words, fmt.Sprintf("%d..%d", p.lo, p.hi))
		case constants[p.kind] != nil:
			words = append(words, "constant")
		case p.isLabel() || p.kind == "literal":
			words = append(words, "label")
		default:
			words = append(words, p.kind[:1])
		}
	}
	return s.name + " " + strings.Join(words, ", ")
}
