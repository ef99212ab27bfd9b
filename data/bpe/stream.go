package bpe

import "unicode/utf8"

// Stream turns token ids into text one by one, for output as it is made. A character whose bytes are spread over
// several tokens comes out whole: the start of a character is held back until the rest is there, or cannot come any
// more. Bytes that are not valid UTF-8 pass through as they are. The concatenation of everything returned is Decode of
// the ids.
type Stream struct {
	t    *Tokenizer
	held []byte // the start of a character, at most 3 bytes, and then what is being put together
}

// NewStream returns a stream with nothing held back.
func NewStream(t *Tokenizer) *Stream { return &Stream{t: t} }

// Push adds one token and returns the text that is complete now, which may be empty.
func (s *Stream) Push(id int32) string { return s.PushBytes(s.t.Bytes(id)) }

// PushBytes adds bytes as Push adds those of a token.
func (s *Stream) PushBytes(b []byte) string {
	s.held = append(s.held, b...)
	ready := len(s.held) - incompleteTail(s.held)
	text := string(s.held[:ready])
	s.held = append(s.held[:0], s.held[ready:]...)
	return text
}

// Flush returns what is held back, when no more tokens follow.
func (s *Stream) Flush() string {
	text := string(s.held)
	s.held = s.held[:0]
	return text
}

// incompleteTail returns how many bytes at the end of b are the start of a character that is not complete.
func incompleteTail(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		tail := b[len(b)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
