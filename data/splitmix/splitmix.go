// Package splitmix is the project's pseudo-random source: splitmix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014). It gives the same numbers on every platform and in every version of Go,
// which is why the generator of stories and the shuffling of batches use it in place of math/rand.
// It is not fit for secrets.
package splitmix

import "math/bits"

// Source is a stream of pseudo-random numbers; its value is the whole state. Not safe for concurrent use.
type Source uint64

// New starts the stream of a seed. Streams of one seed with different stream numbers are unrelated to each other.
func New(seed, stream uint64) *Source {
	// Mixed twice, so that neighbouring seeds and streams start far apart.
	s := Source(mix(mix(seed+gamma) + stream))
	return &s
}

const gamma = 0x9e3779b97f4a7c15

// Next is the next 64 bits.
func (s *Source) Next() uint64 {
	*s += gamma
	return mix(uint64(*s))
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below is an unbiased number in [0, n); n must be positive (Lemire, "Fast random integer generation in an interval",
// 2019).
func (s *Source) Below(n uint64) uint64 {
	if n == 0 {
		panic("splitmix: Below of 0")
	}
	high, low := bits.Mul64(s.Next(), n)
	if low < n {
		for threshold := -n % n; low < threshold; {
			high, low = bits.Mul64(s.Next(), n)
		}
	}
	return high
}
