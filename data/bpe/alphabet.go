package bpe

import "unicode/utf8"

// The byte alphabet of GPT-2: in a tokenizer.json every byte is written as one printable character. Printable bytes of
// Latin-1 stand for themselves; the other 68 take U+0100 and up, in order.
var byteChar, charByte = makeAlphabet()

// highestChar is the last character of the alphabet.
const highestChar = 0x143

func printable(b int) bool {
	return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae
}

// makeAlphabet returns the character of each byte, and the byte of each character (-1: not in the alphabet).
func makeAlphabet() (chars [256]rune, bytes [highestChar + 1]int16) {
	for c := range bytes {
		bytes[c] = -1
	}
	next := rune(0x100)
	for b := range chars {
		if printable(b) {
			chars[b] = rune(b)
		} else {
			chars[b] = next
			next++
		}
		bytes[chars[b]] = int16(b)
	}
	return chars, bytes
}

// appendChars appends the alphabet's characters for the bytes of an entry.
func appendChars(dst []byte, entry []byte) []byte {
	for _, b := range entry {
		dst = utf8.AppendRune(dst, byteChar[b])
	}
	return dst
}

// bytesOf is the reverse of appendChars; ok is false when s holds a character outside the alphabet.
func bytesOf(s string) (entry []byte, ok bool) {
	entry = make([]byte, 0, len(s))
	for _, r := range s {
		if r > highestChar || charByte[r] < 0 {
			return nil, false
		}
		entry = append(entry, byte(charByte[r]))
	}
	return entry, true
}

// alphabetOrder lists the 256 bytes in the order of their characters, which is the order of their ids in a trained
// vocabulary.
func alphabetOrder() []byte {
	order := make([]byte, 0, 256)
	for _, b := range charByte {
		if b >= 0 {
			order = append(order, byte(b))
		}
	}
	return order
}
