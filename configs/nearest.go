package configs

import "strings"

// Nearest gives the candidate with the smallest edit distance to word, the first one on a tie, and "" when none is
// near enough to be a likely slip.
func Nearest(word string, candidates []string) string {
	if len(word) > 64 {
		return ""
	}
	best, bestDistance := "", len(word)/3+2
	for _, c := range candidates {
		if d := editDistance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, substitutions and swaps of neighbours that turn a into b
// (optimal string alignment).
func editDistance(a, b string) int {
	previous2, previous, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(previous[j]+1, row[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], previous2[j-2]+1)
			}
		}
		previous2, previous, row = previous, row, previous2
	}
	return previous[len(b)]
}
