package check

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed survivors.txt
var survivors string

// Reasons say why faults change nothing.
type Reasons []reason

type reason struct{ file, was, now, why string }

// KnownReasons are those that lie beside this package, in survivors.txt.
func KnownReasons() (Reasons, error) { return readReasons("survivors.txt", survivors) }

// readReasons reads lines of FILE | INSTRUCTION | FAULT | REASON; a fault of * is any of the instruction's.
func readReasons(name, text string) (Reasons, error) {
	var all Reasons
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Split(line, "|")
		for k := range parts {
			parts[k] = strings.TrimSpace(parts[k])
		}
		if len(parts) != 4 || parts[3] == "" {
			return nil, fmt.Errorf("%s:%d: wants FILE | INSTRUCTION | FAULT | REASON", name, i+1)
		}
		all = append(all, reason{parts[0], parts[1], parts[2], parts[3]})
	}
	return all, nil
}

func (all Reasons) find(file, was, now string) string {
	for _, r := range all {
		if r.file == file && r.was == was && (r.now == now || r.now == "*") {
			return r.why
		}
	}
	return ""
}
