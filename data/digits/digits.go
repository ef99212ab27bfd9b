// Package digits writes whole numbers for people: one separator for every table and message.
package digits

import "strconv"

// Comma writes 1234567 as 1,234,567.
func Comma[T ~int | ~int32 | ~int64 | ~uint32 | ~uint64](n T) string {
	var s string
	if n < 0 {
		s = strconv.FormatInt(int64(n), 10)
	} else {
		s = strconv.FormatUint(uint64(n), 10)
	}
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
