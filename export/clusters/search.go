package clusters

import (
	"sort"

	"github.com/chiplm/chiplm/qat"
)

// Candidate is a token and its logit.
type Candidate struct {
	ID    int32
	Logit float32
}

// before says whether a comes before b: by logit down, then id up.
func (a Candidate) before(b Candidate) bool {
	return a.Logit > b.Logit || a.Logit == b.Logit && a.ID < b.ID
}

// Work counts what a search read.
type Work struct {
	Clusters int         // of which rows were looked at
	Blocks   [Levels]int // of each level
	Rows     int         // in full
}

// Add adds the counts of another search.
func (w *Work) Add(o Work) {
	w.Clusters += o.Clusters
	for l, n := range o.Blocks {
		w.Blocks[l] += n
	}
	w.Rows += o.Rows
}

// Bytes is what a search reads: rotation, clusters and lanes for every token, then blocks and rows as counted. rowBytes
// is the size of a row of the head, codes and scales.
func (c *Clusters) Bytes(w Work, rowBytes int) int {
	n := c.D*c.D + 4*c.D                     // rotation
	n += 4*c.D + c.Count()*(2*BoxDims+2) + 4 // weights, boxes, the last end; a box is padded to 8 bytes
	n += 4 * (c.Count())                     // first positions
	n += Levels * (4*c.D + Lanes*8 + 4)      // weights, lanes
	for _, b := range w.Blocks {
		n += b * BlockBytes
	}
	return n + w.Rows*(rowBytes+4) // and the row's id
}

// Search finds the k best of the head's rows, ordered by logit down, then id up; x is D int8 codes, scale their scale,
// 1 <= k <= V. Logits are those of the full head, to the bit. With a margin of 1 or more the result is that of the full
// head; with less it may miss some.
func (c *Clusters) Search(head *qat.Matrix, x []int8, scale float32, k int, margin float32) ([]Candidate, Work) {
	q := c.NewQuery(x, margin)
	bounds := make([]float32, c.Count())
	order := make([]int, c.Count())
	for i := range bounds {
		bounds[i], order[i] = q.Cluster(i)*scale, i
	}
	sort.SliceStable(order, func(a, b int) bool { return bounds[order[a]] > bounds[order[b]] })
	var best []Candidate
	var work Work
	// out says that a row with this bound cannot be among the k best. An equal logit may still win by its id.
	out := func(bound float32) bool { return len(best) == k && bound < best[k-1].Logit }
	for _, i := range order {
		if out(bounds[i]) {
			break
		}
		work.Clusters++
		for at := int(c.First[i]); at < int(c.First[i+1]); at++ {
			if c.beaten(q, at, scale, out, &work) {
				continue
			}
			work.Rows++
			id := c.Order[at]
			best = insert(best, Candidate{id, Logit(head, int(id), x, scale)}, k)
		}
	}
	return best, work
}

// beaten says whether some level proves the row at a position out.
func (c *Clusters) beaten(q *Query, at int, scale float32, out func(float32) bool, work *Work) bool {
	var sum, bound float32
	for l := range c.Levels {
		work.Blocks[l]++
		bound, sum = q.Row(l, at, sum)
		if out(bound * scale) {
			return true
		}
	}
	return false
}

// insert puts a candidate into its place among at most k.
func insert(best []Candidate, x Candidate, k int) []Candidate {
	at := sort.Search(len(best), func(i int) bool { return x.before(best[i]) })
	if at == k {
		return best
	}
	if len(best) < k {
		best = append(best, Candidate{})
	}
	copy(best[at+1:], best[at:])
	best[at] = x
	return best
}

// Logit is the product of one row of the head with a hidden state, as docs/numerics.md defines it.
func Logit(head *qat.Matrix, row int, x []int8, scale float32) float32 {
	groups, width := qat.Groups(head.Spec, head.Cols), head.Group
	if width <= 0 {
		width = head.Cols
	}
	var acc float32
	for g := range groups {
		var s int32
		for k := g * width; k < min((g+1)*width, head.Cols); k++ {
			s += int32(head.Codes[row*head.Cols+k]) * int32(x[k])
		}
		part := float32(s) * head.Scales[row*groups+g]
		if g == 0 {
			acc = part
		} else {
			acc += part
		}
	}
	return acc * scale
}
