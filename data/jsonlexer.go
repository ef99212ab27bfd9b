package data

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonLexer reads JSON (RFC 8259) from a stream, a value at a time, in bounded memory. Unlike encoding/json it knows
// line and offset of every error, and keeps bytes of strings that are not UTF-8.
type jsonLexer struct {
	r     io.Reader
	buf   []byte
	pos   int   // buf[pos:] is unread
	start int64 // offset of buf[0] in the file
	line  int   // of buf[pos], from 1
	err   error // of the reader, met once buf is used up
	limit int   // most bytes of a string that is kept
	short []byte
}

// maxDepth bounds the nesting of values, and with it the stack.
const maxDepth = 1000

func newJSONLexer(r io.Reader, offset int64, limit int) *jsonLexer {
	return &jsonLexer{r: r, buf: make([]byte, 0, firstWindow), start: offset, line: 1, limit: limit}
}

// errorf is an error at the next byte.
func (l *jsonLexer) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d, byte %d: %s", l.line, l.start+int64(l.pos), fmt.Sprintf(format, args...))
}

// fill reads more when the buffer is used up; false at the end of the stream or on an error, which l.err tells apart.
func (l *jsonLexer) fill() bool {
	for l.pos == len(l.buf) {
		if l.err != nil {
			return false
		}
		l.start += int64(len(l.buf))
		l.pos = 0
		n, err := l.r.Read(l.buf[:cap(l.buf)])
		l.buf, l.err = l.buf[:n], err
	}
	return true
}

// end is the error of a stream that ends inside a value.
func (l *jsonLexer) end(what string) error {
	if l.err != io.EOF {
		return l.err
	}
	return l.errorf("the file ends inside %s: is it cut short?", what)
}

// space skips white space and gives the next byte without consuming it; 0 and false at the end of the stream.
func (l *jsonLexer) space() (byte, bool) {
	for l.fill() {
		switch b := l.buf[l.pos]; b {
		case '\n':
			l.line++
		case ' ', '\t', '\r':
		default:
			return b, true
		}
		l.pos++
	}
	return 0, false
}

// expect skips white space and consumes the byte want.
func (l *jsonLexer) expect(want byte, where string) error {
	b, ok := l.space()
	if !ok {
		return l.end(where)
	}
	if b != want {
		return l.errorf("%s where %q is wanted in %s", show(b), want, where)
	}
	l.pos++
	return nil
}

// show names a byte in an error.
func show(b byte) string {
	if b >= 0x20 && b < 0x7f {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("byte 0x%02x", b)
}

// str reads a string, the opening quote being next. With keep its content is appended to dst, at most l.limit bytes.
// A surrogate without its other half stands for U+FFFD.
func (l *jsonLexer) str(dst []byte, keep bool) ([]byte, error) {
	begin := len(dst)
	line, offset := l.line, l.start+int64(l.pos)
	var high rune // a high surrogate that waits for its other half
	put := func(text ...byte) {
		if high != 0 && keep {
			dst = utf8.AppendRune(dst, utf8.RuneError)
		}
		high = 0
		if keep {
			dst = append(dst, text...)
		}
	}
	l.pos++
	for l.fill() {
		chunk := l.buf[l.pos:]
		n := 0
		for n < len(chunk) && chunk[n] != '"' && chunk[n] != '\\' && chunk[n] >= 0x20 {
			n++
		}
		if n > 0 {
			put(chunk[:n]...)
			l.pos += n
		}
		if len(dst)-begin > l.limit {
			return dst, fmt.Errorf("line %d, byte %d: a string is longer than %d bytes", line, offset, l.limit)
		}
		if n == len(chunk) {
			continue
		}
		switch chunk[n] {
		case '"':
			put()
			l.pos++
			return dst, nil
		case '\\':
			r, coded, err := l.escape()
			if err != nil {
				return dst, err
			}
			if pair := utf16.DecodeRune(high, r); coded && pair != utf8.RuneError {
				high = 0
				put(utf8.AppendRune(nil, pair)...)
			} else if coded && r >= 0xd800 && r < 0xdc00 {
				put()
				high = r
			} else {
				put(utf8.AppendRune(nil, r)...)
			}
		default:
			return dst, l.errorf("%s inside a string: it must be written as an escape such as \\n", show(chunk[n]))
		}
	}
	return dst, l.end("a string")
}

// next consumes and gives the next byte of a string's escape.
func (l *jsonLexer) next() (byte, error) {
	if !l.fill() {
		return 0, l.end("a string")
	}
	l.pos++
	return l.buf[l.pos-1], nil
}

// escape reads an escape, the backslash being next, and gives what it stands for; coded tells that it was a \u, which
// may be half of a surrogate pair.
func (l *jsonLexer) escape() (r rune, coded bool, err error) {
	l.pos++
	b, err := l.next()
	if err != nil {
		return 0, false, err
	}
	if b == 'u' {
		r, err = l.hex()
		return r, true, err
	}
	i := bytes.IndexByte([]byte(`"\/bfnrt`), b)
	if i < 0 {
		l.pos--
		return 0, false, l.errorf("unknown escape: a backslash followed by %s", show(b))
	}
	return rune("\"\\/\b\f\n\r\t"[i]), false, nil
}

// hex reads the four digits of \u.
func (l *jsonLexer) hex() (rune, error) {
	var u rune
	for range 4 {
		b, err := l.next()
		if err != nil {
			return 0, err
		}
		switch {
		case b >= '0' && b <= '9':
			u = u<<4 | rune(b-'0')
		case b >= 'a' && b <= 'f':
			u = u<<4 | rune(b-'a'+10)
		case b >= 'A' && b <= 'F':
			u = u<<4 | rune(b-'A'+10)
		default:
			l.pos--
			return 0, l.errorf("%s where one of four hexadecimal digits is wanted after \\u", show(b))
		}
	}
	return u, nil
}

// skip reads past any value.
func (l *jsonLexer) skip(depth int) error {
	if depth > maxDepth {
		return l.errorf("values nested deeper than %d", maxDepth)
	}
	b, ok := l.space()
	if !ok {
		return l.end("a record")
	}
	switch b {
	case '"':
		_, err := l.str(nil, false)
		return err
	case '{':
		return l.object(func([]byte) error { return l.skip(depth + 1) })
	case '[':
		return l.array(func() error { return l.skip(depth + 1) })
	}
	_, err := l.scalar()
	return err
}

// array reads an array, its bracket being next, and calls element for each; element must consume one value.
func (l *jsonLexer) array(element func() error) error {
	l.pos++
	for n := 0; ; n++ {
		b, ok := l.space()
		if !ok {
			return l.end("an array")
		}
		if b == ']' && n == 0 {
			l.pos++
			return nil
		}
		if err := element(); err != nil {
			return err
		}
		if b, ok = l.space(); !ok {
			return l.end("an array")
		}
		if b != ',' && b != ']' {
			return l.errorf("%s where ',' or ']' is wanted in an array", show(b))
		}
		l.pos++
		if b == ']' {
			return nil
		}
	}
}

// object reads an object, its brace being next, and calls member with each key; member must consume the value. The key
// is only valid until it does.
func (l *jsonLexer) object(member func(key []byte) error) error {
	l.pos++
	var key []byte
	for n := 0; ; n++ {
		b, ok := l.space()
		if !ok {
			return l.end("an object")
		}
		if b == '}' && n == 0 {
			l.pos++
			return nil
		}
		if b != '"' {
			return l.errorf("%s where a key in double quotes is wanted", show(b))
		}
		var err error
		if key, err = l.str(key[:0], true); err != nil {
			return err
		}
		if err := l.expect(':', "an object"); err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
		if b, ok = l.space(); !ok {
			return l.end("an object")
		}
		if b != ',' && b != '}' {
			return l.errorf("%s where ',' or '}' is wanted in an object", show(b))
		}
		l.pos++
		if b == '}' {
			return nil
		}
	}
}

// maxScalar is the most bytes of a number.
const maxScalar = 1000

// scalar reads a number, true, false or null.
func (l *jsonLexer) scalar() (string, error) {
	l.short = l.short[:0]
	for l.fill() {
		b := l.buf[l.pos]
		if !(b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '+' || b == '-' || b == '.') {
			break
		}
		if len(l.short) == maxScalar {
			return "", l.errorf("a number of more than %d digits", maxScalar)
		}
		l.short = append(l.short, b)
		l.pos++
	}
	if len(l.short) == 0 {
		if l.pos == len(l.buf) {
			return "", l.end("a record")
		}
		return "", l.errorf("%s where a value is wanted", show(l.buf[l.pos]))
	}
	if !json.Valid(l.short) {
		return "", l.errorf("%.20q is no JSON value", l.short)
	}
	return string(l.short), nil
}
