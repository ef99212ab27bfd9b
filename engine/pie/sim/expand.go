package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// macro is what .macro defined.
type macro struct {
	parameters []parameter
	body       []statement
}

type parameter struct {
	name, value      string
	needed, takesAll bool
}

// expander runs through statements, obeys conditions, repetitions and macros, and passes on what is left.
type expander struct {
	include func(rest string) ([]statement, error)
	symbols map[string]int64
	macros  map[string]*macro
	uses    int // of macros: what \@ stands for
	passed  int
	pass    func(s statement) error
}

// condition is one open .if.
type condition struct {
	place   place
	on      bool // statements count now
	done    bool // a branch was taken
	outer   bool // the condition around it holds
	hasElse bool
}

func (x *expander) run(all []statement, depth int) error {
	if depth > 50 {
		return all[0].errorf("macros use each other more than 50 deep; end the recursion with .if")
	}
	var open []condition
	on := func() bool { return len(open) == 0 || open[len(open)-1].on }
	for i := 0; i < len(all); i++ {
		s := all[i]
		fail := func(format string, args ...any) error { return s.errorf(format, args...) }
		word, rest := cutWord(s.text)
		word = strings.ToLower(word)
		switch word {
		case ".if", ".ifdef", ".ifndef", ".ifc", ".ifnc", ".ifb", ".ifnb", ".ifeq", ".ifne", ".ifgt", ".ifge", ".iflt", ".ifle":
			holds := false
			if on() {
				var err error
				if holds, err = x.holds(word, rest); err != nil {
					return fail("%s: %v", word, err)
				}
			}
			open = append(open, condition{s.place, on() && holds, holds, on(), false})
			continue
		case ".else", ".elseif":
			if len(open) == 0 {
				return fail("%s without .if", word)
			}
			c := &open[len(open)-1]
			if c.hasElse {
				return fail("%s after .else", word)
			}
			c.hasElse = word == ".else"
			holds := c.hasElse
			if word == ".elseif" && c.outer && !c.done {
				var err error
				if holds, err = x.holds(".if", rest); err != nil {
					return fail(".elseif: %v", err)
				}
			}
			c.on = c.outer && !c.done && holds
			c.done = c.done || c.on
			continue
		case ".endif":
			if len(open) == 0 {
				return fail(".endif without .if")
			}
			open = open[:len(open)-1]
			continue
		}
		if !on() {
			continue
		}
		if x.passed++; x.passed > mostStatements {
			return fail("more than %d statements after macros and repetitions", mostStatements)
		}
		switch word {
		case ".macro", ".rept", ".irp", ".irpc":
			end := ".endr"
			if word == ".macro" {
				end = ".endm"
			}
			n := blockLength(all[i+1:])
			if n < 0 {
				return fail("%s has no %s", word, end)
			}
			if last, _ := cutWord(all[i+1+n].text); strings.ToLower(last) != end {
				return fail("%s ends with %s at line %d; write %s", word, last, all[i+1+n].line, end)
			}
			body := all[i+1 : i+1+n]
			if err := x.block(word, rest, body, depth, fail); err != nil {
				return err
			}
			i += n + 1
			continue
		case ".endm", ".endr":
			return fail("%s without its start", word)
		case ".include":
			more, err := x.include(rest)
			if err != nil {
				return fail(".include: %v", err)
			}
			if len(more) > 0 {
				if err := x.run(more, depth+1); err != nil {
					return err
				}
			}
			continue
		case ".exitm", ".purgem", ".altmacro":
			return fail("%s is not known here; write it without", word)
		}
		if m := x.macros[word]; m != nil {
			body, err := x.use(m, word, rest, s)
			if err != nil {
				return fail("%v", err)
			}
			if len(body) > 0 {
				if err := x.run(body, depth+1); err != nil {
					return err
				}
			}
			continue
		}
		if err := x.pass(s); err != nil {
			return err
		}
	}
	if len(open) > 0 {
		return open[len(open)-1].place.errorf(".if has no .endif")
	}
	return nil
}

// holds evaluates a condition.
func (x *expander) holds(word, rest string) (bool, error) {
	switch word {
	case ".ifdef", ".ifndef":
		_, ok := x.symbols[strings.TrimSpace(rest)]
		return ok == (word == ".ifdef"), nil
	case ".ifb", ".ifnb":
		return (rest == "" || rest == `""`) == (word == ".ifb"), nil
	case ".ifc", ".ifnc":
		two := list(rest)
		if len(two) != 2 {
			return false, fmt.Errorf("wants two texts, separated by a comma")
		}
		return (strings.Trim(two[0], `"'`) == strings.Trim(two[1], `"'`)) == (word == ".ifc"), nil
	}
	v, err := evaluate(rest, x.symbols)
	switch word {
	case ".ifeq":
		return v == 0, err
	case ".ifgt":
		return v > 0, err
	case ".ifge":
		return v >= 0, err
	case ".iflt":
		return v < 0, err
	case ".ifle":
		return v <= 0, err
	}
	return v != 0, err
}

// blockLength counts the statements up to the end of the block that has begun; -1: there is no end.
func blockLength(all []statement) int {
	depth := 0
	for i, s := range all {
		word, _ := cutWord(s.text)
		switch strings.ToLower(word) {
		case ".macro", ".rept", ".irp", ".irpc":
			depth++
		case ".endm", ".endr":
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// block obeys .macro, .rept, .irp and .irpc.
func (x *expander) block(word, rest string, body []statement, depth int, fail func(string, ...any) error) error {
	switch word {
	case ".macro":
		name, parameters, err := macroHead(rest)
		if err != nil {
			return fail(".macro: %v", err)
		}
		if x.macros[name] != nil {
			return fail(".macro %s is there already; give one of them another name", name)
		}
		if specs[strings.TrimPrefix(name, "_")] != nil {
			return fail(".macro %s has the name of an instruction; give it another", name)
		}
		x.macros[name] = &macro{parameters, body}
		return nil
	case ".rept":
		n, err := evaluate(rest, x.symbols)
		if err != nil {
			return fail(".rept: %v", err)
		}
		if n < 0 || n > mostStatements {
			return fail(".rept %d: wants 0 to %d", n, mostStatements)
		}
		for range n {
			if len(body) == 0 {
				break
			}
			if err := x.run(body, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	var values []string
	name, after, ok := strings.Cut(rest, ",")
	if ok {
		if values = list(after); word == ".irpc" {
			values = strings.Split(strings.TrimSpace(after), "")
		}
	} else {
		name, after = cutWord(rest)
		values = strings.Fields(after)
	}
	if name = strings.TrimSpace(name); !isWord(name) {
		return fail("%s %s: wants a name and values", word, rest)
	}
	for _, v := range values {
		copied := replaceAll(body, []string{name}, []string{strings.Trim(v, `"`)}, -1, "")
		if len(copied) == 0 {
			break
		}
		if err := x.run(copied, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// macroHead reads what follows .macro: a name and parameters, each with =VALUE, :req or :vararg.
func macroHead(s string) (string, []parameter, error) {
	name, rest := cutWord(s)
	if i := strings.IndexByte(name, ','); i >= 0 {
		name, rest = name[:i], name[i+1:]+" "+rest
	}
	if !isWord(name) || isDigit(name[0]) {
		return "", nil, fmt.Errorf("%q is not a name", name)
	}
	rest = strings.NewReplacer(" =", "=", "= ", "=").Replace(strings.Join(strings.Fields(rest), " "))
	var all []parameter
	seen := map[string]bool{}
	for _, word := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == ' ' }) {
		var p parameter
		word, p.value, _ = strings.Cut(word, "=")
		name, kind, _ := strings.Cut(word, ":")
		switch p.name = name; kind {
		case "":
		case "req":
			p.needed = true
		case "vararg":
			p.takesAll = true
		default:
			return "", nil, fmt.Errorf("%q is no kind of a parameter; :req and :vararg are", kind)
		}
		if !isWord(p.name) || seen[p.name] {
			return "", nil, fmt.Errorf("parameter %q is no name, or is there twice", p.name)
		}
		seen[p.name] = true
		all = append(all, p)
	}
	return strings.ToLower(name), all, nil
}

// use gives the body of a macro with the arguments in.
func (x *expander) use(m *macro, name, rest string, s statement) ([]statement, error) {
	names, values := make([]string, len(m.parameters)), make([]string, len(m.parameters))
	given := make([]bool, len(m.parameters))
	for i, p := range m.parameters {
		names[i], values[i] = p.name, p.value
	}
	arguments := list(rest)
	next := 0
	for k, a := range arguments {
		i := next
		if key, v, ok := strings.Cut(a, "="); ok {
			for j, p := range m.parameters {
				if p.name == strings.TrimSpace(key) {
					i, a = j, strings.TrimSpace(v)
				}
			}
		}
		if i >= len(m.parameters) {
			return nil, fmt.Errorf("macro %s takes %d arguments, not %d", name, len(m.parameters), len(arguments))
		}
		if m.parameters[i].takesAll {
			a = strings.Join(arguments[k:], ", ")
		}
		if a != "" {
			values[i], given[i] = strings.Trim(a, `"`), true
		}
		next = i + 1
		if m.parameters[i].takesAll {
			break
		}
	}
	for i, p := range m.parameters {
		if p.needed && !given[i] {
			return nil, fmt.Errorf("macro %s wants a value for %s", name, p.name)
		}
	}
	n := x.uses
	x.uses++
	via := fmt.Sprintf("in macro %s, used at line %d", name, s.line)
	if s.via != "" {
		via += ", " + s.via
	}
	return replaceAll(m.body, names, values, n, via), nil
}

// replaceAll puts values in for \name, and n for \@ unless it is negative.
func replaceAll(body []statement, names, values []string, n int, via string) []statement {
	out := make([]statement, 0, len(body))
	for _, s := range body {
		s.text = replace(s.text, names, values, n)
		if via != "" {
			s.via = via
		}
		for t := strings.TrimSpace(s.text); t != ""; {
			label, rest := cutLabel(t)
			if s.text = t; label != "" {
				s.text = label + ":"
			}
			out = append(out, s)
			t = rest
		}
	}
	return out
}

func replace(s string, names, values []string, n int) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		if s[i+1] == '@' && n >= 0 {
			b.WriteString(strconv.Itoa(n))
			i += 2
			continue
		}
		if strings.HasPrefix(s[i+1:], "()") {
			i += 3
			continue
		}
		// A dot is part of a name, as in the assembler: ee.v\op\().s8 is right, ee.v\op.s8 names nothing.
		j := i + 1
		for j < len(s) && isSymbol(s[j]) {
			j++
		}
		found := false
		for k, name := range names {
			if s[i+1:j] == name {
				b.WriteString(values[k])
				i, found = j, true
				break
			}
		}
		if !found {
			b.WriteByte(s[i])
			i++
		}
	}
	return b.String()
}
