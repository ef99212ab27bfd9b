package compare

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// nameWidth is how many columns the name of an arm may take.
const nameWidth = 24

// clean makes a name fit for one line: what cannot be printed becomes a question mark.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.TrimSpace(name))
}

// short cuts a name to so many columns, out of its middle: names of variants differ at their ends.
func short(name string, columns int) string {
	if uniseg.StringWidth(name) <= columns {
		return name
	}
	var clusters []string
	for g := uniseg.NewGraphemes(name); g.Next(); {
		clusters = append(clusters, g.Str())
	}
	head, tail := "", ""
	left := columns - 1
	for from, to := 0, len(clusters); from < to; {
		if c := clusters[from]; uniseg.StringWidth(head+c)+uniseg.StringWidth(tail) <= left {
			head, from = head+c, from+1
		} else {
			break
		}
		if from == to {
			break
		}
		if c := clusters[to-1]; uniseg.StringWidth(head)+uniseg.StringWidth(c+tail) <= left {
			tail, to = c+tail, to-1
		} else {
			break
		}
	}
	return head + "…" + tail
}

// wrap breaks a text into lines of at most so many columns, at spaces; a longer word is cut.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		word = short(word, columns)
		switch {
		case line == "":
			line = word
		case uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > columns:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// decimals is how many digits after the point tell a figure of this uncertainty: one digit of it, two when the first is a 1.
func decimals(half float64) int {
	if !(half > 0) {
		return 4
	}
	exponent := int(math.Floor(math.Log10(half)))
	digits := -exponent
	if half/math.Pow10(exponent) < 1.95 {
		digits++
	}
	return min(max(digits, 3), 8)
}

// percent tells the size of a relative change.
func percent(change float64) string {
	p := 100 * math.Abs(change)
	if p < 9.95 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}
