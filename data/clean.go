package data

import "bytes"

// blanks are the bytes trimmed from both ends of a story.
const blanks = " \t\r\n"

// clean brings a story into its final form, in place: carriage returns before a line feed are dropped, blanks at both
// ends are trimmed. It gives the same result when applied again.
func clean(story []byte) []byte {
	if bytes.IndexByte(story, '\r') >= 0 {
		kept := story[:0]
		for _, b := range story {
			if b == '\n' {
				for len(kept) > 0 && kept[len(kept)-1] == '\r' {
					kept = kept[:len(kept)-1]
				}
			}
			kept = append(kept, b)
		}
		story = kept
	}
	return bytes.Trim(story, blanks)
}
