package splitmix

import "testing"

// The first outputs for seed 1234567, published with the reference implementation's test vectors.
func TestReferenceVector(t *testing.T) {
	s := Source(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423,
		4593380528125082431, 16408922859458223821} {
		if got := s.Next(); got != want {
			t.Errorf("output %d is %d, want %d", i, got, want)
		}
	}
}

func TestBelowIsUniformAndInRange(t *testing.T) {
	s := New(7, 0)
	for _, n := range []uint64{1, 2, 3, 7, 50, 1 << 63, 1<<64 - 1} {
		for range 200 {
			if v := s.Below(n); v >= n {
				t.Fatalf("Below(%d) gave %d", n, v)
			}
		}
	}
	const n, draws = 10, 100000
	var count [n]int
	for range draws {
		count[s.Below(n)]++
	}
	for v, c := range count {
		// Standard deviation is 95: 600 is beyond six of them.
		if c < draws/n-600 || c > draws/n+600 {
			t.Errorf("value %d drawn %d times of %d", v, c, draws)
		}
	}
}

func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(50) {
		for stream := range uint64(50) {
			v := New(seed, stream).Next()
			if seen[v] {
				t.Fatalf("seed %d, stream %d starts like another", seed, stream)
			}
			seen[v] = true
		}
	}
}
