package data

import (
	"bytes"
	"fmt"
	"io"
)

// A separator finds where the first story of a window ends. It looks from index from on, everything before that having
// been looked at. When a separator stands in the window, it gives the story's end and the start of the next; otherwise
// end is -1 and next is the index from which to look once the window has grown.
type separator func(window []byte, from int) (end, next int)

// atDelimiter separates stories at <|endoftext|>.
func atDelimiter(window []byte, from int) (end, next int) {
	if i := bytes.Index(window[from:], []byte(Delimiter)); i >= 0 {
		return from + i, from + i + len(Delimiter)
	}
	// The window may end inside a delimiter.
	return -1, max(from, len(window)-len(Delimiter)+1)
}

// atBlankLine separates stories at a line of nothing but spaces, tabs and carriage returns.
func atBlankLine(window []byte, from int) (end, next int) {
	for {
		i := bytes.IndexByte(window[from:], '\n')
		if i < 0 {
			return -1, len(window)
		}
		i += from
		j := i + 1
		for j < len(window) && (window[j] == ' ' || window[j] == '\t' || window[j] == '\r') {
			j++
		}
		if j == len(window) {
			return -1, i
		}
		if window[j] == '\n' {
			return i, j + 1
		}
		from = j
	}
}

// firstWindow is the size at which the window of split starts.
const firstWindow = 256 << 10

// split reads r and calls yield with every story that is not empty. offset is that of r's first byte in the file, for
// errors. A story of more than limit bytes is refused.
func split(r io.Reader, offset int64, limit int, find separator, yield func([]byte) error) error {
	buf := make([]byte, firstWindow)
	head, tail := 0, 0 // the window is buf[head:tail]
	from := 0          // how much of the window has been searched
	tooLong := func() error {
		return fmt.Errorf("the story at byte %d is longer than %d bytes: divide it with %s", offset+int64(head), limit,
			Delimiter)
	}
	emit := func(story []byte) error {
		if story = clean(story); len(story) == 0 {
			return nil
		}
		return yield(story)
	}
	for eof := false; ; {
		end, next := find(buf[head:tail], from)
		if end > limit {
			return tooLong()
		}
		if end >= 0 {
			if err := emit(buf[head : head+end]); err != nil {
				return err
			}
			head, from = head+next, 0
			continue
		}
		// No separator begins before from, so the story has at least that many bytes.
		from = next
		if from > limit || eof && tail-head > limit {
			return tooLong()
		}
		if eof {
			return emit(buf[head:tail])
		}
		if head > 0 {
			offset += int64(head)
			copy(buf, buf[head:tail])
			head, tail = 0, tail-head
		}
		if tail == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
		n, err := r.Read(buf[tail:])
		tail += n
		if err == io.EOF {
			eof = true
		} else if err != nil {
			return err
		}
	}
}
