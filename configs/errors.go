package configs

import (
	"fmt"
	"strings"
)

// Error says what is wrong with a model file and where. Source is the file, or the --set argument at fault, or empty
// for a [Config] that was built in Go; Line and Column count from 1 and are 0 when unknown; Key is the dotted key, or
// empty when the fault is not in one key.
type Error struct {
	Source       string
	Line, Column int
	Key          string
	Problem      string
}

// Error gives "file:line:column: key: problem".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Source)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
		if e.Column > 0 {
			fmt.Fprintf(&b, ":%d", e.Column)
		}
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

// position is where a key or value was written.
type position struct {
	source       string
	line, column int
	rank         int // a later layer has a higher rank: base files, the file itself, then each --set
}

func (p position) errorf(key, format string, args ...any) *Error {
	return &Error{Source: p.source, Line: p.line, Column: p.column, Key: key, Problem: fmt.Sprintf(format, args...)}
}

// quote shows a piece of the user's text, shortened, so that a hostile file cannot flood the terminal.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	return fmt.Sprintf("%q", s)
}
