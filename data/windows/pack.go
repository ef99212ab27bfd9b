package windows

import (
	"cmp"
	"slices"
)

// Pack divides windows of the given lengths into few groups of at most size tokens, each group given by the places of its
// windows in lengths: the longest first, each where it leaves the least room ("best fit decreasing"; D. S. Johnson,
// "Near-optimal bin packing algorithms", 1973). No length may be above size.
func Pack(lengths []int, size int) [][]int {
	longest := make([]int, len(lengths))
	for i := range longest {
		longest[i] = i
	}
	slices.SortStableFunc(longest, func(a, b int) int { return cmp.Compare(lengths[b], lengths[a]) })
	var groups [][]int
	withRoom := make([][]int, size+1) // withRoom[n] are the groups that have room for n tokens more
	for _, w := range longest {
		room := lengths[w]
		for room < size && len(withRoom[room]) == 0 {
			room++
		}
		g := len(groups)
		if stack := withRoom[room]; len(stack) > 0 {
			g, withRoom[room] = stack[len(stack)-1], stack[:len(stack)-1]
		} else {
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], w)
		withRoom[room-lengths[w]] = append(withRoom[room-lengths[w]], g)
	}
	return groups
}
