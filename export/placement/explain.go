package placement

import (
	"fmt"
	"strings"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/export/targets"
)

// explain adds notes on what surprises in a plan that is as it should be.
func (l *Layout) explain(c *configs.Config, t *targets.Target) {
	for i, u := range l.Memories[:len(l.Memories)-1] {
		if l.wholeBelow(i) {
			l.Notes = append(l.Notes, fmt.Sprintf("%s is filled on purpose, with the weights that are read most: the target's usable bytes already leave out what the program needs", u.Name))
		}
	}
	l.explainSilence(c)
	if l.Measured != nil {
		l.Notes = append(l.Notes, fmt.Sprintf("what is read of head and neurons was measured on %s tokens that the model wrote itself; other text reads more or less (chiplm sample --count)",
			digits.Comma(l.Measured.Tokens)))
	}
	var bound []string
	for _, m := range t.Memories {
		for _, p := range l.Cost.Parts {
			if p.Name == "products from "+m.Name && p.Bound() == "cycles" {
				bound = append(bound, m.Name)
			}
		}
	}
	k := t.Kernels
	if len(bound) > 0 && (k.Int2.Value >= k.Int4.Value || k.Int4.Value >= k.Int8.Value) {
		l.Notes = append(l.Notes, fmt.Sprintf("products from %s wait for cycles, not bytes: there fewer bits save room and no time (cycles a weight: %g with 2 bits, %g with 4, %g with 8)",
			strings.Join(bound, " and "), k.Int2.Value, k.Int4.Value, k.Int8.Value))
	}
}

// wholeBelow reports whether a tensor that a token reads whole had to go to a memory after the i-th.
func (l *Layout) wholeBelow(i int) bool {
	for _, p := range l.Tensors {
		if !p.table() && p.Tier > l.Memories[i].Tier {
			return true
		}
	}
	return false
}

// explainSilence says what silent neurons leave unread.
func (l *Layout) explainSilence(c *configs.Config) {
	if c.Activation != configs.ReLU || l.Measured != nil && l.Measured.Neurons != nil {
		return
	}
	var bytes float64
	for _, p := range l.Tensors {
		if _, part := configs.SplitTensor(p.Name); part == configs.Up || part == configs.Down {
			bytes += p.ReadBytes
		}
	}
	l.Notes = append(l.Notes, fmt.Sprintf("every neuron is counted as read; the engine leaves out those behind a closed gate, and so about %s of these %s bytes a token for each tenth of the neurons that is silent (chiplm sample --count tells how many are)",
		digits.Comma(int64(bytes/10)), digits.Comma(int64(l.ReadBytes))))
}
