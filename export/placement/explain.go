package placement

import (
	"fmt"
	"math"
	"strings"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/export/targets"
	"github.com/chiplm/chiplm/qat"
)

// explain adds notes on what surprises in a plan that is as it should be.
func (l *Layout) explain(c *configs.Config, t *targets.Target) {
	for i, u := range l.Memories[:len(l.Memories)-1] {
		if l.wholeBelow(i) {
			l.Notes = append(l.Notes, fmt.Sprintf("%s is filled on purpose, with the weights that are read most: the target's usable bytes already leave out what the program needs", u.Name))
		}
	}
	l.explainSilence(c)
	if l.Measured != nil && !l.Measured.Assumed {
		l.Notes = append(l.Notes, fmt.Sprintf("what is read of head and neurons was measured on %s tokens that the model wrote itself; other text reads more or less (chiplm sample --count)",
			digits.Comma(l.Measured.Tokens)))
	}
	l.explainBits(c, t)
}

// explainBits says where fewer bits would save room and no time.
func (l *Layout) explainBits(c *configs.Config, t *targets.Target) {
	p := t.Profile(l.Cost.Profile)
	per := func(bits int) float64 {
		q := c.WeightQuant(configs.ClassTrunk)
		n, sum := float64(c.DModel), 0.0
		for _, k := range p.For(targets.Product, bits, c.DModel, q.Group) {
			sum += k.Cycles(0, 1, float64(qat.Groups(q, c.DModel)), n)
		}
		return sum / n
	}
	var bound []string
	for _, m := range t.Memories {
		for _, part := range l.Cost.Parts {
			if part.Name == configs.QKV && part.Memory == m.Name && part.Bound() == Cycles {
				bound = append(bound, m.Name)
			}
		}
	}
	if two, four, eight := per(2), per(4), per(8); len(bound) > 0 && (two >= four || four >= eight) {
		l.Notes = append(l.Notes, fmt.Sprintf("products from %s wait for cycles, not bytes: there fewer bits save room and no time (cycles a weight: %.2f with 2 bits, %.2f with 4, %.2f with 8)",
			strings.Join(bound, " and "), two, four, eight))
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
		digits.Comma(int64(bytes/10)), digits.Comma(int64(math.Round(l.ReadBytes)))))
}
