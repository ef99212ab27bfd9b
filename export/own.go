package export

import (
	"context"
	"fmt"
	"slices"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/clusters"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/qat"
)

const (
	ownTokens = 8192 // of the model's own text tell what its hidden states are like, and which neurons speak
	keepEvery = 32   // states, one is kept to measure searches on
	ownTop    = 4096 // tokens that it draws among; ordering more of them takes longer than the model does
)

// ownText is what is learnt from text that a model writes.
type ownText struct {
	moment *clusters.Moment // of the hidden states before the head
	states [][]float32      // some of them
	reads  *engine.Reads
}

// study lets the model write, clusters the head if that is asked for, and notes what the text reads of what need not be
// read whole. b.Bytes is the image without clusters.
func (b *Built) study(ctx context.Context, head func() (*qat.Matrix, error), n int) error {
	n, err := b.clusterCount(n)
	if err != nil {
		return err
	}
	if n == NoClusters && b.Config.Activation != configs.ReLU {
		return nil // everything is read
	}
	own, err := writeText(ctx, b.Bytes)
	if err != nil {
		return fmt.Errorf("the model's own text: %w", err)
	}
	b.Measured = &placement.Measured{Tokens: int(own.reads.Positions), Neurons: neuronsOf(b.Config, own.reads)}
	if n == NoClusters {
		return nil
	}
	rows, err := head()
	if err != nil {
		return err
	}
	b.Measured.Head, err = b.addClusters(rows, n, own)
	if b.Measured.Head != nil {
		b.Measured.Head.Idle = !b.Target.Profile("").Reads.Searches(bestTokens)
	}
	return err
}

// neuronsOf is what was read behind the gates; nil where every neuron is read.
func neuronsOf(c *configs.Config, reads *engine.Reads) []placement.Neurons {
	if c.Activation != configs.ReLU {
		return nil
	}
	out := make([]placement.Neurons, c.NLayers)
	for l := range out {
		out[l] = placement.Neurons{Experts: reads.Positions, Up: reads.UpRows[l], Down: reads.DownColumns[l]}
	}
	for i, t := range c.Budget().Tensors {
		if l, part := configs.SplitTensor(t.Name); part == configs.Down && t.Block > 0 {
			column, group := placement.ColumnBytes(t)
			out[l].Groups = (reads.Tensors[i] - out[l].Down*column) / group
		}
	}
	return out
}

// writeText lets the model of an image write, token by token, at temperature 1.
func writeText(ctx context.Context, file []byte) (*ownText, error) {
	im, err := engine.NewImage(file)
	if err != nil {
		return nil, fmt.Errorf("the engine refuses the image: %w", err)
	}
	defer im.Close()
	e, err := engine.New(im, engine.Options{Batch: 1})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	m := im.Model()
	own := &ownText{moment: clusters.NewMoment(m.DModel)}
	n := 0
	err = e.Trace(func(s engine.Step) {
		if s.Name != "output_norm" {
			return
		}
		own.moment.Add(s.Values)
		if n++; n%keepEvery == 0 {
			own.states = append(own.states, slices.Clone(s.Values))
		}
	})
	if err != nil {
		return nil, err
	}
	logits := make([]float32, m.VocabSize)
	rng := engine.RNG(1)
	eot := im.EndOfText()
	id := eot
	for range ownTokens {
		if e.Position() == m.ContextLength {
			e.Reset()
			id = eot
		}
		if e.Position() == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		if err := e.ForwardLast([]int32{id}, logits); err != nil {
			return nil, err
		}
		if id, err = engine.Sample(logits, 1, min(ownTop, len(logits)), &rng); err != nil {
			return nil, err
		}
		if id == eot {
			e.Reset()
		}
	}
	own.reads, err = e.Reads()
	return own, err
}
