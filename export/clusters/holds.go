package clusters

import (
	"fmt"
	"math"

	"github.com/chiplm/chiplm/qat"
)

// Holds says whether the bounds promise what they must for every hidden state: that every token has one place, in ascending
// order within its cluster; that boxes and codes leave of each row no more than the stored norms say; and that no row is
// longer than RowNorm. It works from the rows in float64, as [Make] does, and takes what Make gives; clusters that were
// changed since are refused, unless a bound merely became looser.
func (c *Clusters) Holds(head *qat.Matrix) error {
	v, d := c.V, c.D
	if head.Rows != v || head.Cols != d {
		return fmt.Errorf("clusters: the head is %d x %d, the clusters are for %d x %d", head.Rows, head.Cols, v, d)
	}
	if err := c.check(); err != nil {
		return err
	}
	rows := widen(head)
	longest := largestNorm(rows, d)
	if float64(c.RowNorm) < longest/(1+0x1p-29) {
		return fmt.Errorf("clusters: a row has the norm %g, the stored largest is %g", longest, c.RowNorm)
	}
	u, err := coefficients(widen(c.Rotation), rows, v, d, longest)
	if err != nil {
		return err
	}
	seen := make([]bool, v)
	for k := range c.Count() {
		for at := c.First[k]; at < c.First[k+1]; at++ {
			id := c.Order[at]
			if seen[id] || at > c.First[k] && id <= c.Order[at-1] {
				return fmt.Errorf("clusters: token %d at position %d is there twice, or out of order in cluster %d", id, at, k)
			}
			seen[id] = true
			if err := c.holdsRow(k, int(at), u[int(id)*d:(int(id)+1)*d]); err != nil {
				return fmt.Errorf("clusters: token %d in cluster %d: %w", id, k, err)
			}
		}
	}
	return nil
}

// holdsRow holds one row's coefficients against the box of its cluster and its blocks.
func (c *Clusters) holdsRow(k, at int, u []float64) error {
	box := &c.Boxes[k]
	for j := range min(BoxDims, c.D) {
		low, high := float64(float64(box.Low[j])*float64(c.BoxSteps[j])), float64(float64(box.High[j])*float64(c.BoxSteps[j]))
		if slack := 1e-9 * (math.Abs(low) + math.Abs(high)); u[j] < low-slack || u[j] > high+slack {
			return fmt.Errorf("direction %d is %g, the box has %g to %g", j, u[j], low, high)
		}
	}
	if err := withinNorm(u, c.Weights, BoxDims, box.Norm, c.NormStep); err != nil {
		return fmt.Errorf("outside of the box: %w", err)
	}
	rest := append([]float64(nil), u...)
	for l := range c.Levels {
		level := &c.Levels[l]
		block := level.Blocks[at*BlockBytes : (at+1)*BlockBytes]
		for lane, j := range level.Dims {
			code := int8(block[lane%(Lanes/2)]<<4) >> 4
			if lane >= Lanes/2 {
				code = int8(block[lane-Lanes/2]) >> 4
			}
			rest[j] -= float64(float64(code) * float64(level.Steps[lane]))
		}
		if err := withinNorm(rest, level.Weights, 0, block[BlockBytes-1], level.NormStep); err != nil {
			return fmt.Errorf("after level %d: %w", l, err)
		}
	}
	return nil
}

// withinNorm compares the norm of r/w with a stored one. A weight of 0 leaves its direction out, which only the first free
// ones may be; others must be 0 there.
func withinNorm(r []float64, w []float32, free int, stored uint8, step float32) error {
	var n2 float64
	for j, x := range r {
		switch {
		case w[j] != 0:
			y := x / float64(w[j])
			n2 += float64(y * y)
		case j >= free && x != 0:
			return fmt.Errorf("direction %d has %g and no weight", j, x)
		}
	}
	if n, most := math.Sqrt(n2), float64(stored)*float64(step); n > most*(1+1e-9)+1e-30 {
		return fmt.Errorf("the norm is %g, the stored one %g", n, most)
	}
	return nil
}
