package line

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// escape writes a text as the last field of a request: line ends and control bytes as escapes, all else as it is.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\\':
			b.WriteString(`\\`)
		case c < ' ' || c == 0x7F:
			fmt.Fprintf(&b, `\x%02X`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape reads the bytes of a token.
func unescape(s string) ([]byte, error) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < ' ' || c > '~' {
			return nil, fmt.Errorf("byte %#x is not escaped", c)
		}
		if c != '\\' {
			out = append(out, c)
			continue
		}
		rest := s[i+1:]
		switch {
		case strings.HasPrefix(rest, "n"):
			out = append(out, '\n')
			i++
		case strings.HasPrefix(rest, `\`):
			out = append(out, '\\')
			i++
		case strings.HasPrefix(rest, "x") && len(rest) >= 3:
			v, err := strconv.ParseUint(rest[1:3], 16, 8)
			if err != nil {
				return nil, errors.New(`\x is followed by two hexadecimal digits`)
			}
			out = append(out, byte(v))
			i += 3
		default:
			return nil, errors.New(`a backslash is followed by n, \ or xHH`)
		}
	}
	return out, nil
}
