package qat

import "math"

// Rotary gives the cosines and sines of the rotary angles, [positions, dim/2] each: the angle of position t and pair i
// is t * theta^(-2i/dim), computed in double precision and rounded once.
func Rotary(positions, dim int, theta float64) (cosines, sines []float32) {
	half := dim / 2
	cosines, sines = make([]float32, positions*half), make([]float32, positions*half)
	for i := range half {
		frequency := math.Pow(theta, -2*float64(i)/float64(dim))
		for t := range positions {
			sin, cos := math.Sincos(float64(t) * frequency)
			cosines[t*half+i], sines[t*half+i] = float32(cos), float32(sin)
		}
	}
	return cosines, sines
}
