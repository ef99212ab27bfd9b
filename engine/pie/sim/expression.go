package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// evaluate computes a constant expression with the assembler's precedence, which is not C's: unary; then * / % << >>;
// then | & ^ and !, which is "or not"; then + - and comparisons, whose true is -1; then && and ||.
func evaluate(s string, symbols map[string]int64) (int64, error) {
	e := expression{text: s, symbols: symbols}
	v, err := e.binary(0)
	if err != nil {
		return 0, err
	}
	if e.skip(); e.at < len(e.text) {
		return 0, fmt.Errorf("%q is not a constant expression: %q is left over", s, e.text[e.at:])
	}
	return v, nil
}

type expression struct {
	text    string
	at      int
	depth   int
	symbols map[string]int64
}

var levels = [][]string{{"||", "&&"}, {"==", "!=", "<>", "<=", ">=", "<", ">", "+", "-"}, {"|", "&", "^", "!"}, {"*", "/", "%", "<<", ">>"}}

func (e *expression) skip() {
	for e.at < len(e.text) && (e.text[e.at] == ' ' || e.text[e.at] == '\t') {
		e.at++
	}
}

// operator reads an operator of a level. Longer ones of other levels are not cut in two.
func (e *expression) operator(level int) string {
	e.skip()
	rest := e.text[e.at:]
	longest, found := "", 0
	for l, ops := range levels {
		for _, o := range ops {
			if len(o) > len(longest) && strings.HasPrefix(rest, o) {
				longest, found = o, l
			}
		}
	}
	if longest == "" || found != level {
		return ""
	}
	e.at += len(longest)
	return longest
}

func (e *expression) binary(level int) (int64, error) {
	if level == len(levels) {
		return e.unary()
	}
	x, err := e.binary(level + 1)
	for err == nil {
		o := e.operator(level)
		if o == "" {
			return x, nil
		}
		var y int64
		if y, err = e.binary(level + 1); err == nil {
			x, err = apply(o, x, y)
		}
	}
	return 0, err
}

func truth(b bool) int64 {
	if b {
		return -1
	}
	return 0
}

func apply(o string, x, y int64) (int64, error) {
	switch o {
	case "||":
		return truth(x != 0 || y != 0), nil
	case "&&":
		return truth(x != 0 && y != 0), nil
	case "==":
		return truth(x == y), nil
	case "!=", "<>":
		return truth(x != y), nil
	case "<=":
		return truth(x <= y), nil
	case ">=":
		return truth(x >= y), nil
	case "<":
		return truth(x < y), nil
	case ">":
		return truth(x > y), nil
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "|":
		return x | y, nil
	case "&":
		return x & y, nil
	case "^":
		return x ^ y, nil
	case "!":
		return x | ^y, nil
	case "*":
		return x * y, nil
	case "/", "%":
		if y == 0 {
			return 0, fmt.Errorf("a division by zero")
		}
		if y == -1 { // the least number has no negative
			if o == "/" {
				return -x, nil
			}
			return 0, nil
		}
		if o == "/" {
			return x / y, nil
		}
		return x % y, nil
	}
	if y < 0 || y > 63 {
		return 0, fmt.Errorf("a shift by %d", y)
	}
	if o == "<<" {
		return x << y, nil
	}
	return x >> y, nil
}

func (e *expression) unary() (int64, error) {
	if e.depth++; e.depth > 100 {
		return 0, fmt.Errorf("an expression of more than 100 levels")
	}
	defer func() { e.depth-- }()
	e.skip()
	if e.at == len(e.text) {
		return 0, fmt.Errorf("%q: a constant is missing", e.text)
	}
	switch c := e.text[e.at]; {
	case c == '-' || c == '~' || c == '+' || c == '!':
		e.at++
		v, err := e.unary()
		switch c {
		case '-':
			v = -v
		case '~':
			v = ^v
		case '!':
			if v != 0 {
				v = 0
			} else {
				v = 1
			}
		}
		return v, err
	case c == '(':
		e.at++
		v, err := e.binary(0)
		if err != nil {
			return 0, err
		}
		if e.skip(); e.at == len(e.text) || e.text[e.at] != ')' {
			return 0, fmt.Errorf("%q: a parenthesis is not closed", e.text)
		}
		e.at++
		return v, nil
	case c == '\'' && e.at+1 < len(e.text):
		v := int64(e.text[e.at+1])
		if e.at += 2; e.at < len(e.text) && e.text[e.at] == '\'' {
			e.at++
		}
		return v, nil
	case isSymbol(c):
		start := e.at
		for e.at < len(e.text) && isSymbol(e.text[e.at]) {
			e.at++
		}
		word := e.text[start:e.at]
		if isDigit(c) {
			v, err := strconv.ParseUint(word, 0, 64)
			if err != nil || strings.Contains(word, "_") {
				return 0, fmt.Errorf("%q is not a number", word)
			}
			return int64(v), nil
		}
		if v, ok := e.symbols[word]; ok {
			return v, nil
		}
		return 0, fmt.Errorf("%q has no value here; give it one with .set before, or with #define", word)
	}
	return 0, fmt.Errorf("%q is not a constant expression", e.text)
}
