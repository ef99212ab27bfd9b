package qat

import (
	"math"
	"testing"
)

// Rows that were worked out by hand of docs/numerics.md, in another language.
func TestNgramRow(t *testing.T) {
	for _, c := range [][4]uint32{{0, 0, 7, 0}, {4096, 0, 16384, 11575}, {4095, 4095, 16384, 13653}, {17, 3, 1000, 106}, {3, 17, 1000, 14}, {16777216, 16777215, 16777216, 12288101}, {1, 2, 1, 0}} {
		if got := NgramRow(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("row of %d, %d among %d: %d, want %d", c[0], c[1], c[2], got, c[3])
		}
	}
}

// Pairs of tokens spread over the rows as random ones do: the squared distances from an even spread, each divided by what
// is expected, add up to the number of rows in the mean, with a standard deviation of the root of twice that.
func TestNgramRowSpreads(t *testing.T) {
	const ids = 700
	for _, rows := range []uint32{1, 2, 3, 64, 1000, 4096, 65536, 100_003} {
		for name, pairs := range map[string][3]uint32{ // ids, times previous, times id
			"all": {ids, 1, 1}, "one previous": {ids * ids, 0, 1}, "one id": {ids * ids, 1, 0},
		} {
			count := make([]float64, rows)
			n := 0.0
			for a := range pairs[0] {
				for b := range pairs[0] {
					if pairs[1]+pairs[2] < 2 && b > 0 {
						break
					}
					id := b
					if pairs[1] == 0 {
						id = a
					}
					count[NgramRow(a*pairs[1], id*pairs[2], rows)]++
					n++
				}
			}
			chi := 0.0
			for _, c := range count {
				want := n / float64(rows)
				chi += (c - want) * (c - want) / want
			}
			free := float64(rows - 1)
			if math.Abs(chi-free) > 6*math.Sqrt(2*free)+1e-9 {
				t.Errorf("%s over %d rows: chi-squared %.0f, want about %.0f", name, rows, chi, free)
			}
		}
	}
}
