package clusters

import (
	"math"

	"github.com/chiplm/chiplm/qat"
)

// stepShares are the steps tried for a lane, as shares of the root mean square of what it codes.
var stepShares = [...]float64{0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5}

// code fills the levels. Each lane takes the direction that leaves the largest products of row and token, and codes what
// earlier lanes left of the rows there.
func (c *Clusters) code(s *space) {
	rest := append([]float64(nil), s.u...)
	squares := meanSquares(rest, s.v, s.d)
	position := make([]int, s.v)
	for at, id := range c.Order {
		position[id] = at
	}
	for l := range c.Levels {
		level := &c.Levels[l]
		codes := &qat.Matrix{Spec: qat.Spec{Bits: 4}, Rows: s.v, Cols: 32, Codes: make([]int8, s.v*32)}
		for lane := range Lanes {
			j := 0
			for k, m := range squares {
				if m*s.z2[k] > squares[j]*s.z2[j] {
					j = k
				}
			}
			if squares[j] <= s.floor {
				continue
			}
			step := bestStep(rest, s.v, s.d, j, math.Sqrt(squares[j]))
			level.Dims[lane], level.Steps[lane] = int32(j), float32(step)
			squares[j] = 0
			for i := range s.v {
				x := &rest[i*s.d+j]
				k := nearest(*x, step)
				*x -= float64(k * step)
				codes.Codes[position[i]*32+Column(lane)] = int8(k)
				squares[j] += float64(*x * *x)
			}
			squares[j] /= float64(s.v)
		}
		level.Weights = s.weights(rest)
		norms := make([]float64, s.v)
		for i := range s.v {
			norms[position[i]] = norm(rest[i*s.d:(i+1)*s.d], s.u[i*s.d:(i+1)*s.d], level.Weights)
		}
		bytes, step := bytesUp(norms)
		level.NormStep, level.Blocks = step, codes.PackCodes()
		for at, b := range bytes {
			level.Blocks[at*BlockBytes+BlockBytes-1] = b
		}
	}
}

// Column is the column of a block's 32 in which a lane's code lies.
func Column(lane int) int {
	if lane < Lanes/2 {
		return lane
	}
	return lane + 1
}

// nearest is x in steps, rounded and held within the codes.
func nearest(x, step float64) float64 { return max(-MaxCode, min(MaxCode, math.RoundToEven(x/step))) }

// bestStep is the step, a float32, that leaves the least square of column j.
func bestStep(rest []float64, v, d, j int, rms float64) float64 {
	best, least := 0.0, math.Inf(1)
	for _, share := range stepShares {
		step := float64(float32(share * rms))
		var sum float64
		for i := range v {
			x := rest[i*d+j]
			left := x - float64(nearest(x, step)*step)
			sum += float64(left * left)
		}
		if sum < least {
			best, least = step, sum
		}
	}
	return best
}
