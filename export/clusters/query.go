package clusters

import (
	"math"

	"github.com/chiplm/chiplm/qat"
)

// Query is what the bounds of one token are computed from: the turned hidden state, in the form each stage wants.
//
// All values are in units of the hidden state's scale: a bound is a bound of acc of docs/numerics.md, the sum before it is
// multiplied by the scale. That product is monotone, so acc <= bound gives logit <= float32(bound*scale), rounding
// included. The slack covers all other rounding, with u = 2^-24 and e = (D+128) u:
//
//   - acc differs from the true sum by at most (groups+2) u |w||x|, and the row from its coefficients by u |w||x|;
//   - a lane's value y is rounded twice, and once more as a step of 1/32767 of the largest: with codes of at most 7, at
//     most 7*30*0.51 steps a level, below 108; the product of codes is exact, and carries 2 u of its size, at most 7 sum|y|;
//   - a norm N is a sum of D squares in eight chains: (D/16+6) u of its size, and n N twice more; n N is at most 255 steps;
//   - adding the parts up: a few u of the sum of their sizes.
//
// Each is less than e times |w||x| + 7 sum|y| + 255 steps of n N (for a box, with 127 sum|y|). No product is subnormal:
// Make refuses heads where one could be.
type Query struct {
	c    *Clusters
	box  [BoxDims]float32 // value of 1 in Box.Low and Box.High
	norm float32          // value of 1 in Box.Norm
	more float32          // slack of a box's bound

	levels [Levels]queryLevel
}

type queryLevel struct {
	lanes [Lanes]int32 // y in units of step, +-32767
	step  float32
	norm  float32 // value of 1 in a norm byte
	slack float32
}

// NewQuery prepares the bounds of hidden state x, D int8 codes. margin scales all norms: 1 for bounds that hold.
func (c *Clusters) NewQuery(x []int8, margin float32) *Query {
	q := &Query{c: c}
	z := make([]float32, c.D)
	var squares int32
	for j := range z {
		var s int32
		for k, t := range c.Rotation.Codes[j*c.D : (j+1)*c.D] {
			s += int32(t) * int32(x[k])
		}
		z[j] = float32(s) * c.Rotation.Scales[j]
		squares += int32(x[j]) * int32(x[j])
	}
	e := float32(c.D+128) * 0x1p-24
	whole := c.RowNorm * float32(math.Sqrt(float64(float32(squares))))

	q.norm = float32(norm32(z, c.Weights)*c.NormStep) * margin
	var sum float32
	for j := range min(BoxDims, c.D) {
		q.box[j] = z[j] * c.BoxSteps[j]
		sum += abs32(q.box[j])
	}
	q.more = e * (whole + float32(127*sum) + float32(255*q.norm))

	sum = 0
	var rounding float32
	for l := range c.Levels {
		level, to := &c.Levels[l], &q.levels[l]
		var y [Lanes]float32
		var m float32
		for i, j := range level.Dims {
			y[i] = z[j] * level.Steps[i]
			sum += abs32(y[i])
			m = max(m, abs32(y[i]))
		}
		if m > 0 {
			r := 32767 / m
			to.step = m / 32767
			for i := range y {
				to.lanes[i] = int32(qat.RNE(float32(y[i] * r)))
			}
		}
		rounding += float32(108 * to.step)
		to.norm = float32(norm32(z, level.Weights)*level.NormStep) * margin
		to.slack = float32(e*(whole+float32(7*sum)+float32(255*to.norm))) + rounding
	}
	return q
}

// norm32 is the norm of z times w.
func norm32(z, w []float32) float32 {
	p := make([]float32, len(z))
	for j := range z {
		x := z[j] * w[j]
		p[j] = x * x
	}
	return float32(math.Sqrt(float64(qat.Sum8(p))))
}

func abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) & 0x7fffffff) }

// Cluster bounds acc of every row of a cluster.
func (q *Query) Cluster(k int) float32 {
	b := &q.c.Boxes[k]
	var s float32
	for j, y := range q.box {
		end := b.Low[j]
		if y > 0 {
			end = b.High[j]
		}
		s += float32(float32(end) * y)
	}
	return (s + float32(float32(b.Norm)*q.norm)) + q.more
}

// Row bounds acc of the row at a position by the block of one level. sum is what the levels before gave for it, 0 at
// level 0; the value returned beside the bound is the sum for the next level.
func (q *Query) Row(level, position int, sum float32) (bound, next float32) {
	l := &q.levels[level]
	block := q.c.Levels[level].Blocks[position*BlockBytes : (position+1)*BlockBytes]
	var dot int32
	for j, b := range block[:BlockBytes-1] {
		dot += int32(int8(b<<4)>>4)*l.lanes[j] + int32(int8(b)>>4)*l.lanes[j+Lanes/2]
	}
	next = sum + float32(float32(dot)*l.step)
	return (next + float32(float32(block[BlockBytes-1])*l.norm)) + l.slack, next
}
