package sim

import (
	"fmt"
	"strings"
)

// mostStatements bounds what macros and repetitions may grow to.
const mostStatements = 200_000

// place is where something is written.
type place struct {
	file string
	line int
	via  string // the uses of macros that it came through
}

// errorf says what is wrong there.
func (p place) errorf(format string, args ...any) error {
	via := p.via
	if via != "" {
		via = " (" + via + ")"
	}
	return fmt.Errorf("%s:%d: %s%s", p.file, p.line, fmt.Sprintf(format, args...), via)
}

// statement is a line without comments: one label, directive or instruction.
type statement struct {
	place
	text string
}

// lines cuts a file into statements, as the C preprocessor and the assembler's scanner do: comments go, names that
// #define gave a value become that value.
func lines(name, text string, defines map[string]string) ([]statement, error) {
	var all []statement
	inComment := 0 // the line where it began
	for i, raw := range strings.Split(text, "\n") {
		at := place{file: name, line: i + 1}
		clean, comment, err := withoutComments(raw, inComment > 0)
		if err != nil {
			return nil, at.errorf("%v", err)
		}
		if !comment {
			inComment = 0
		} else if inComment == 0 {
			inComment = at.line
		}
		if t := strings.TrimSpace(clean); strings.HasPrefix(t, "#") {
			if err := define(defines, t); err != nil {
				return nil, at.errorf("%v", err)
			}
			continue
		}
		if hash := outside(clean, '#'); hash >= 0 {
			clean = clean[:hash]
		}
		if clean, err = substitute(defines, clean); err != nil {
			return nil, at.errorf("%v", err)
		}
		for _, s := range splitOutside(clean, ';') {
			for s = strings.TrimSpace(s); s != ""; {
				label, rest := cutLabel(s)
				if label != "" {
					all = append(all, statement{at, label + ":"})
				} else {
					all = append(all, statement{at, s})
				}
				s = rest
			}
		}
		if len(all) > mostStatements {
			return nil, at.errorf("more than %d statements; split the file", mostStatements)
		}
	}
	if inComment > 0 {
		return nil, place{file: name, line: inComment}.errorf("the comment that begins here has no end; close it with */")
	}
	return all, nil
}

// withoutComments replaces comments by a space. inside: the line starts within a comment; so does the next one if the
// returned flag is set.
func withoutComments(s string, inside bool) (string, bool, error) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		two := s[i:min(i+2, len(s))]
		switch {
		case inside:
			if two == "*/" {
				inside = false
				b.WriteByte(' ')
				i++
			}
		case quoted:
			quoted = s[i] != '"'
			b.WriteByte(s[i])
		case two == "//":
			return b.String(), false, nil
		case two == "/*":
			inside = true
			i++
		default:
			if s[i] != '\t' && s[i] != '\r' && (s[i] < ' ' || s[i] > '~') {
				return "", false, fmt.Errorf("character %q outside a comment; write ASCII", s[i])
			}
			quoted = s[i] == '"'
			b.WriteByte(s[i])
		}
	}
	if quoted {
		return "", false, fmt.Errorf("a string has no end on its line; close it with a quote")
	}
	return b.String(), inside, nil
}

// define obeys a line of the preprocessor.
func define(defines map[string]string, t string) error {
	word, rest := cutWord(strings.TrimSpace(t[1:]))
	switch word {
	case "define":
		i := 0
		for i < len(rest) && isName(rest[i]) {
			i++
		}
		key, value := rest[:i], rest[i:]
		if key == "" || isDigit(key[0]) || strings.HasPrefix(value, "(") {
			return fmt.Errorf("#define %s: only #define NAME VALUE is known; write a .macro", rest)
		}
		defines[key] = strings.TrimSpace(value)
	case "undef":
		delete(defines, rest)
	case "include":
		return fmt.Errorf("#include is not known: use .include, which the assembler obeys")
	case "if", "ifdef", "ifndef", "else", "elif", "endif", "error", "pragma", "warning":
		return fmt.Errorf("#%s is not known; use .if, .else and .endif", word)
	}
	return nil
}

// substitute puts the values of defined names in, their names included, until none is left.
func substitute(defines map[string]string, s string) (string, error) {
	if len(defines) == 0 {
		return s, nil
	}
	for range 20 {
		changed := false
		var b strings.Builder
		for i := 0; i < len(s); {
			if !isName(s[i]) {
				b.WriteByte(s[i])
				i++
				continue
			}
			j := i
			for j < len(s) && isName(s[j]) {
				j++
			}
			word := s[i:j]
			if v, ok := defines[word]; ok && v != word && (i == 0 || s[i-1] != '.' && s[i-1] != '\\') {
				word, changed = v, true
			}
			b.WriteString(word)
			i = j
		}
		s = b.String()
		if len(s) > 1<<16 {
			break
		}
		if !changed {
			return s, nil
		}
	}
	return "", fmt.Errorf("names of #define stand for each other without end")
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isName(c byte) bool {
	return c == '_' || c == '$' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isSymbol: names of labels and mnemonics also have dots.
func isSymbol(c byte) bool { return c == '.' || isName(c) }

// isWord says that s is a symbol, or a number for local labels.
func isWord(s string) bool {
	for i := range len(s) {
		if !isSymbol(s[i]) {
			return false
		}
	}
	return s != ""
}

// cutLabel cuts a label off the start of a statement. In the body of a macro it may hold arguments.
func cutLabel(s string) (label, rest string) {
	i := 0
	for i < len(s) && (isSymbol(s[i]) || s[i] == '\\' || s[i] == '@' || strings.HasPrefix(s[i:], "()") || s[i] == ')' && i > 0 && s[i-1] == '(') {
		i++
	}
	if i > 0 && i < len(s) && s[i] == ':' {
		return s[:i], strings.TrimSpace(s[i+1:])
	}
	return "", ""
}

// cutWord cuts the first word off.
func cutWord(s string) (word, rest string) {
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

// outside finds a byte outside strings; -1: none.
func outside(s string, c byte) int {
	quoted := false
	for i := range len(s) {
		if s[i] == '"' {
			quoted = !quoted
		} else if s[i] == c && !quoted {
			return i
		}
	}
	return -1
}

// splitOutside splits at a byte outside strings and parentheses.
func splitOutside(s string, c byte) []string {
	var parts []string
	quoted, depth, start := false, 0, 0
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case quoted:
		case s[i] == '(':
			depth++
		case s[i] == ')':
			depth--
		case s[i] == c && depth <= 0:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

// list splits operands at commas.
func list(s string) []string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	parts := splitOutside(s, ',')
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
