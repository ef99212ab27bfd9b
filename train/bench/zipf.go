package bench

import (
	"sort"

	"github.com/chiplm/chiplm/data/splitmix"
)

// zipf gives training sequences of independent token ids, the id k with a probability proportional to 1/(k+1): about
// how often the entries of a trained vocabulary occur, so that rows of tables are read as unevenly as with text.
type zipf struct {
	seed    uint64
	context int       // of a sequence
	sums    []float64 // of the weights of the ids up to and with each
}

func newZipf(vocab, context int, seed uint64) *zipf {
	z := &zipf{seed: seed, context: context, sums: make([]float64, vocab)}
	sum := 0.0
	for i := range z.sums {
		sum += 1 / float64(i+1)
		z.sums[i] = sum
	}
	return z
}

// Batch draws the sequences from the n-th on.
func (z *zipf) Batch(n int64, ids, targets []int32, lengths []int) []int {
	for at := 0; at < len(ids); at += z.context {
		z.sequence(n, ids[at:at+z.context], targets[at:at+z.context])
		lengths = append(lengths, z.context)
		n++
	}
	return lengths
}

// sequence draws the n-th sequence, the same ids for the same n. targets[i] is ids[i+1].
func (z *zipf) sequence(n int64, ids, targets []int32) {
	random := splitmix.New(z.seed, uint64(n))
	ids[0] = z.draw(random)
	for i := range targets {
		targets[i] = z.draw(random)
	}
	copy(ids[1:], targets)
}

func (z *zipf) draw(random *splitmix.Source) int32 {
	last := len(z.sums) - 1
	at := float64(random.Next()>>11) / (1 << 53) * z.sums[last]
	return int32(min(sort.Search(last, func(i int) bool { return z.sums[i] > at }), last))
}
