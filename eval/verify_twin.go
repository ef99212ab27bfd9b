package eval

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/engine"
)

// Limits on the windows that a graph computes at a time: bytes of its logits, and positions.
const (
	twinLogitBytes = 8 << 20
	twinPositions  = 1024
)

// stretch is a window of a story.
type stretch struct {
	index           int // among the windows of all stories
	story           int // from 1
	first           int // which token of the story, from 0, is the first target
	inputs, targets []int32
}

// twin is the engine and the training graph in exact mode, side by side. It is used by one goroutine.
type twin struct {
	engine *engine.Engine
	graph  *arch.Graph
	tokens *tokenTexts

	vocab, context, room int // room: positions of a run of the graph
	logits               []float32
	ids, targets         []int32
	lengths              []int
}

func newTwin(s *subject, w *arch.Weights) (*twin, error) {
	c := s.config
	batch := twinBatch(c.VocabSize, c.ContextLength)
	g, err := arch.Build(c, w, arch.Options{Batch: batch, Seq: c.ContextLength, Exact: true, Logits: true})
	if err != nil {
		return nil, err
	}
	g.HoldWeights(true)
	e, err := engine.New(s.image, engine.Options{Batch: scoreBatch})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return &twin{engine: e, graph: g, tokens: &tokenTexts{s.tokenizer}, vocab: c.VocabSize, context: c.ContextLength,
		room: batch * c.ContextLength, logits: make([]float32, scoreBatch*c.VocabSize)}, nil
}

// twinBatch is how many windows of full length a run of the graph has room for.
func twinBatch(vocab, context int) int {
	return max(1, min(twinLogitBytes/(4*vocab*context), twinPositions/context))
}

func (t *twin) close() error { return errors.Join(t.engine.Close(), t.graph.Close()) }

// run lets the graph compute windows, at most t.room positions in all, from the first row on.
func (t *twin) run(group []*stretch) error {
	t.ids, t.targets, t.lengths = t.ids[:0], t.targets[:0], t.lengths[:0]
	for _, w := range group {
		t.ids, t.targets = append(t.ids, w.inputs...), append(t.targets, w.targets...)
		t.lengths = append(t.lengths, len(w.inputs))
	}
	for len(t.ids) < t.room { // what is over is filled with sequences that nobody looks at
		n := min(t.context, t.room-len(t.ids))
		t.lengths = append(t.lengths, n)
		for range n {
			t.ids, t.targets = append(t.ids, 0), append(t.targets, -1)
		}
	}
	if _, err := t.graph.RunSequences(t.ids, t.targets, t.lengths); err != nil {
		return fmt.Errorf("the training graph: %w", err)
	}
	return nil
}

// feed lets the engine compute a window, and hands the logits of each position to see.
func (t *twin) feed(w *stretch, see func(position int, logits []float32) error) error {
	t.engine.Reset()
	for start := 0; start < len(w.inputs); start += scoreBatch {
		end := min(start+scoreBatch, len(w.inputs))
		logits := t.logits[:(end-start)*t.vocab]
		if err := t.engine.Forward(w.inputs[start:end], logits); err != nil {
			return err
		}
		for i := start; i < end; i++ {
			if err := see(i, logits[(i-start)*t.vocab:(i-start+1)*t.vocab]); err != nil {
				return err
			}
		}
	}
	return nil
}

// outcome is what the comparison of a window gave.
type outcome struct {
	window                    *stretch
	engineNats, graphNats     float64 // summed over its targets
	equal                     int     // positions with all logits equal to the bit
	largest                   float64 // difference of two logits
	engineDigest, graphDigest engine.Digest
	disagreements             []Disagreement
}

// compare lets the engine compute a window that the graph has in the rows from row on.
func (t *twin) compare(w *stretch, row int) (outcome, error) {
	o := outcome{window: w, engineDigest: engine.NewDigest(), graphDigest: engine.NewDigest()}
	err := t.feed(w, func(i int, ours []float32) error {
		theirs := t.graph.Logits()[(row+i)*t.vocab : (row+i+1)*t.vocab]
		c := compareLogits(ours, theirs)
		if !c.finite {
			return fmt.Errorf("the training graph: a logit is not finite; first tensor at fault: %s; take an earlier checkpoint",
				cmp.Or(t.graph.FirstNonFinite(), "the logits"))
		}
		if c.equal {
			o.equal++
		}
		o.largest = max(o.largest, c.largest)
		o.engineDigest = o.engineDigest.Add(i, w.inputs[i], ours)
		o.graphDigest = o.graphDigest.Add(i, w.inputs[i], theirs)
		nats, err := engine.NLL(ours, w.targets[i])
		if err != nil {
			return err
		}
		o.engineNats += nats
		o.graphNats += float64(t.graph.NLL()[row+i])
		best, err := engine.ArgMax(ours)
		if err != nil {
			return err
		}
		if best != c.best {
			d := Disagreement{Place: w.place(i), Engine: t.tokens.of(best), Graph: t.tokens.of(c.best),
				EngineGap: float64(ours[best]) - float64(ours[c.best]), GraphGap: float64(theirs[c.best]) - float64(theirs[best])}
			d.NearTie = max(d.EngineGap, d.GraphGap) <= NearTie
			o.disagreements = append(o.disagreements, d)
		}
		return nil
	})
	if err != nil {
		return outcome{}, fmt.Errorf("story %d, the window from its token %d on: %w", w.story, w.first, err)
	}
	return o, nil
}

// place is where a position of the window is in the stories.
func (w *stretch) place(position int) Place {
	return Place{Story: w.story, Token: w.first + position, Position: position}
}

// rowComparison is what the logits of one position gave.
type rowComparison struct {
	equal, finite bool // to the bit; the graph's logits
	largest       float64
	best          int32 // of the graph: the lowest id on a tie
}

func compareLogits(ours, theirs []float32) rowComparison {
	c := rowComparison{equal: true, finite: true}
	for id, x := range theirs {
		bits := math.Float32bits(x)
		if bits>>23&0xff == 0xff {
			c.finite = false
		}
		if x > theirs[c.best] {
			c.best = int32(id)
		}
		if bits != math.Float32bits(ours[id]) {
			c.equal = false
			c.largest = max(c.largest, math.Abs(float64(ours[id])-float64(x)))
		}
	}
	return c
}
