package sim

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Parse assembles a file that includes no other. Errors say file and line, and what to do.
func Parse(name string, text []byte) (*Program, error) {
	return assemble(name, text, func(other string) ([]byte, error) {
		return nil, fmt.Errorf("%s: this text was given without its folder", other)
	})
}

// ParseFile assembles a file of a folder. What it names with .include comes from there.
func ParseFile(folder fs.FS, name string) (*Program, error) {
	text, err := fs.ReadFile(folder, name)
	if err != nil {
		return nil, err
	}
	return assemble(name, text, func(other string) ([]byte, error) { return fs.ReadFile(folder, other) })
}

func assemble(name string, text []byte, read func(other string) ([]byte, error)) (*Program, error) {
	all, err := lines(name, string(text), map[string]string{})
	if err != nil {
		return nil, err
	}
	p := &Program{name: name, symbols: map[string]int64{}, places: map[string]int{}}
	r := parser{p: p, labels: map[string]bool{}}
	x := &expander{symbols: p.symbols, macros: map[string]*macro{}, pass: r.statement}
	x.include = func(rest string) ([]statement, error) {
		other, err := strconv.Unquote(rest)
		if err != nil {
			return nil, fmt.Errorf("%s: wants the name of a file in quotes", rest)
		}
		text, err := read(other)
		if err != nil {
			return nil, err
		}
		// The preprocessor does not see what the assembler includes.
		return lines(other, string(text), map[string]string{})
	}
	if len(all) > 0 {
		if err := x.run(all, 0); err != nil {
			return nil, err
		}
	}
	if err := p.assemble(); err != nil {
		return nil, err
	}
	for _, g := range r.globals {
		if _, ok := p.labels[g.text]; !ok {
			return nil, g.errorf("there is no label %q to be global", g.text)
		}
		if !slices.Contains(p.globals, g.text) {
			p.globals = append(p.globals, g.text)
		}
	}
	return p, nil
}

type parser struct {
	p       *Program
	labels  map[string]bool
	globals []statement
}

// ignored are directives that change nothing here.
var ignored = map[string]bool{".text": true, ".type": true, ".size": true, ".literal_position": true, ".file": true,
	".ident": true, ".begin": true, ".end": true, ".local": true, ".weak": true, ".title": true, ".loc": true,
	".cfi_startproc": true, ".cfi_endproc": true}

// statement takes one label, directive or instruction.
func (r *parser) statement(s statement) error {
	p := r.p
	fail := func(format string, args ...any) error { return s.errorf(format, args...) }
	if i := strings.IndexByte(s.text, '\\'); i >= 0 {
		return fail(`%q names no argument of a macro; where a name ends within a word write \name\()`, s.text[i:])
	}
	if label, ok := strings.CutSuffix(s.text, ":"); ok && isWord(label) {
		if isDigit(label[0]) && strings.Trim(label, "0123456789") != "" {
			return fail("%q is no label; local ones are numbers, names begin with a letter", label)
		}
		if _, ok := p.symbols[label]; ok {
			return fail("%q is a constant already; give the label another name", label)
		}
		p.nodes = append(p.nodes, node{kind: nodeLabel, place: s.place, name: label})
		r.labels[label] = true
		return nil
	}
	word, rest := cutWord(s.text)
	if key, value, ok := strings.Cut(s.text, "="); ok && isWord(strings.TrimSpace(key)) && !strings.HasPrefix(value, "=") {
		word, rest = ".set", strings.TrimSpace(key)+","+value
	}
	word = strings.ToLower(word)
	if !strings.HasPrefix(word, ".") {
		return r.instruction(s, strings.TrimPrefix(word, "_"), rest)
	}
	switch word {
	case ".global", ".globl":
		for _, g := range list(rest) {
			if !isWord(g) {
				return fail("%s %q: wants a name", word, g)
			}
			r.globals = append(r.globals, statement{s.place, g})
		}
	case ".section":
		if !codeSection(rest) {
			return fail(".section %s: kernels have code alone; use .text or a section with the flag \"ax\"", rest)
		}
	case ".align", ".balign", ".p2align":
		return r.align(word, rest, fail)
	case ".set", ".equ", ".equiv":
		return r.set(word, rest, fail)
	case ".literal":
		return r.literal(rest, fail)
	default:
		if !ignored[word] {
			return fail("unknown directive %s; kernels need .text, .section, .align, .global, .literal, .set, .macro, .rept, .irp and .if", word)
		}
	}
	return nil
}

// codeSection says whether a section holds code.
func codeSection(rest string) bool {
	parts := list(rest)
	if len(parts) == 0 {
		return false
	}
	if len(parts) > 1 {
		return strings.Contains(parts[1], "x")
	}
	name := strings.Trim(parts[0], `"`)
	return name == ".text" || strings.HasPrefix(name, ".text.") || strings.HasPrefix(name, ".iram")
}

func (r *parser) align(word, rest string, fail func(string, ...any) error) error {
	parts := list(rest)
	if len(parts) == 0 {
		return fail("%s wants a number", word)
	}
	n, err := evaluate(parts[0], r.p.symbols)
	if err != nil {
		return fail("%s: %v", word, err)
	}
	if word == ".p2align" && n >= 0 && n < 13 {
		n = 1 << n
	}
	if n < 1 || n > 4096 || n&(n-1) != 0 {
		return fail("%s %s: wants a power of two up to 4096", word, rest)
	}
	r.p.nodes = append(r.p.nodes, node{kind: nodeAlign, align: int(n)})
	return nil
}

func (r *parser) set(word, rest string, fail func(string, ...any) error) error {
	key, value, ok := strings.Cut(rest, ",")
	if key = strings.TrimSpace(key); !ok || !isWord(key) || isDigit(key[0]) {
		return fail("%s %s: wants NAME, VALUE", word, rest)
	}
	if r.labels[key] {
		return fail("%s %s: that is a label already; give one of them another name", word, key)
	}
	if _, there := r.p.symbols[key]; there && word == ".equiv" {
		return fail(".equiv %s: it has a value already; use .set to change one", key)
	}
	v, err := evaluate(value, r.p.symbols)
	if err != nil {
		return fail("%s %s: %v", word, key, err)
	}
	r.p.symbols[key] = v
	return nil
}

func (r *parser) literal(rest string, fail func(string, ...any) error) error {
	parts := list(rest)
	if len(parts) < 2 || !isWord(parts[0]) || isDigit(parts[0][0]) {
		return fail(".literal %s: wants NAME, VALUE", rest)
	}
	if _, there := r.p.places[parts[0]]; there {
		return fail(".literal %s is there already; give one of them another name", parts[0])
	}
	r.p.places[parts[0]] = len(r.p.literals)
	for _, text := range parts[1:] {
		v, err := evaluate(text, r.p.symbols)
		if err != nil {
			return fail(".literal %s: %v", parts[0], err)
		}
		if v < -1<<31 || v >= 1<<32 {
			return fail(".literal %s: %d does not fit 32 bits", parts[0], v)
		}
		r.p.literals = append(r.p.literals, uint32(v))
	}
	return nil
}

// instruction adds an instruction. Constants in its operands have the values of this place in the file: they are
// written out, so that they need no names later.
func (r *parser) instruction(s statement, name, rest string) error {
	p := r.p
	operands := list(rest)
	if sp := specs[name]; sp != nil && len(operands) == sp.count {
		place := 0
		for i := range sp.form {
			part := &sp.form[i]
			if !part.isOperand() {
				continue
			}
			if part.kind == "i" || constants[part.kind] != nil {
				v, err := evaluate(operands[place], p.symbols)
				if err != nil {
					return s.errorf("operand %d of %s: %v", place+1, name, err)
				}
				operands[place] = fmt.Sprint(v)
			}
			place++
		}
	}
	n := node{kind: nodeInstruction, place: s.place, ins: Instruction{File: s.file, Line: s.line, Mnemonic: name, Operands: operands}}
	if _, _, err := p.instruction(&n); err != nil {
		return s.errorf("%v", err)
	}
	p.nodes = append(p.nodes, n)
	if len(p.nodes) > mostCode {
		return s.errorf("more than %d instructions; split the file", mostCode)
	}
	return nil
}

// Mnemonics are the instructions that the interpreter knows, sorted.
func Mnemonics() []string { return slices.Sorted(maps.Keys(specs)) }
