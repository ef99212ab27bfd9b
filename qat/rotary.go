package qat

import (
	"math"
	"math/big"
)

// Rotary gives the cosines and sines of the rotary angles, [positions, dim/2] each: the angle of position t and pair i
// is t * theta^(-2i/dim), computed in double precision and rounded once. theta is at least 1, positions at most 32768.
//
// The tables are the same bytes on every machine. Package math would not give that: its functions may fuse
// multiplication and addition where a processor can, and the large angles make the difference visible.
func Rotary(positions, dim int, theta float64) (cosines, sines []float32) {
	half := dim / 2
	cosines, sines = make([]float32, positions*half), make([]float32, positions*half)
	for i, frequency := range frequencies(half, theta) {
		for t := range positions {
			sin, cos := sinCos(float64(t) * frequency)
			cosines[t*half+i], sines[t*half+i] = float32(cos), float32(sin)
		}
	}
	return cosines, sines
}

// frequencies are theta^(-i/n) for i < n, correctly rounded.
func frequencies(n int, theta float64) []float64 {
	const precision = 200
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
	one, base := number(1), number(theta)
	root := number(math.Pow(theta, 1/float64(n)))
	for range 4 { // Newton's method for root^n = theta doubles the correct bits, some 50 at first
		power := number(1)
		for range n {
			power.Mul(power, root)
		}
		excess := number(0).Quo(base, power)
		excess.Sub(one, excess).Quo(excess, number(float64(n)))
		root.Mul(root, excess.Sub(one, excess))
	}
	out := make([]float64, n)
	power := number(1)
	for i := range out {
		out[i], _ = power.Float64()
		power.Quo(power, root)
	}
	return out
}

// sinCos is the sine and the cosine of an angle from 0 to 32768, to about a unit in the last place. Every product is
// converted before it is added to something: Go never fuses across a conversion.
func sinCos(angle float64) (sin, cos float64) {
	// pi/2 in three parts: the first two have 33 bits, so that products with a quadrant's number are exact.
	const (
		part1 = 0x1.921fb544p+0
		part2 = 0x1.0b4611a6p-34
		part3 = 0x1.3198a2e037073p-69
	)
	quadrant := math.Floor(float64(angle*(2/math.Pi)) + 0.5)
	r := angle - float64(quadrant*part1)
	r -= float64(quadrant * part2)
	r -= float64(quadrant * part3)
	// Taylor's series up to r^19 and r^18; abs(r) is at most pi/4.
	square := r * r
	sum := func(terms ...float64) float64 {
		s := 0.0
		for _, c := range terms {
			s = float64(s*square) + c
		}
		return s
	}
	sin = r + float64(float64(r*square)*sum(-1./121645100408832000, 1./355687428096000, -1./1307674368000, 1./6227020800,
		-1./39916800, 1./362880, -1./5040, 1./120, -1./6))
	cos = 1 + float64(square*sum(-1./6402373705728000, 1./20922789888000, -1./87178291200, 1./479001600, -1./3628800, 1./40320,
		-1./720, 1./24, -1./2))
	switch int(quadrant) & 3 {
	case 1:
		sin, cos = cos, -sin
	case 2:
		sin, cos = -sin, -cos
	case 3:
		sin, cos = -cos, sin
	}
	return sin, cos
}
