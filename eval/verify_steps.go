package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/engine"
)

// Steps is the comparison of what engine and graph computed on the way to the logits, value by value.
type Steps struct {
	Windows      int         `json:"windows"`
	Positions    int         `json:"positions"`
	LinearValues int64       `json:"linear_values"` // outputs of linear layers
	LinearEqual  int64       `json:"linear_equal"`  // to the bit
	OtherValues  int64       `json:"other_values"`
	OtherEqual   int64       `json:"other_equal"`
	Kinds        []StepKind  `json:"kinds"`
	First        *Difference `json:"first_difference"` // null: there is none
}

// StepKind adds up the steps of one name over layers and positions.
type StepKind struct {
	Name   string `json:"name"`
	Linear bool   `json:"linear"`
	Values int64  `json:"values"`
	Equal  int64  `json:"equal"` // to the bit
}

// Difference is the first value, in the order of windows, positions and computation, that is not equal to the bit.
type Difference struct {
	Place
	Layer   int      `json:"layer"` // -1 before the first layer and behind the last
	Step    string   `json:"step"`
	Tensors []string `json:"tensors"` // the weights that the step reads: one of them, if not what came before, is at fault
	Index   int      `json:"index"`   // among the step's values
	Engine  float32  `json:"engine"`
	Graph   float32  `json:"graph"`
}

// linearSteps are the outputs of linear layers. That of up is seen as ffn, multiplied with the gate: behind a closed gate
// the engine does not compute it.
var linearSteps = []string{configs.PLEProjection, configs.QKV, configs.AttentionOutput, configs.Router, configs.Gate, arch.StepFFN,
	configs.Down, configs.PLEGate, configs.PLEOutput, configs.Head}

// stepTensors are the weights that enter a step and no earlier one.
func stepTensors(c *configs.Config, layer int, step string) []string {
	switch step {
	case configs.TokenEmbedding:
		if c.NgramRows > 0 {
			return []string{configs.TokenEmbedding, configs.NgramTable}
		}
	case arch.StepMix:
		return []string{configs.PLEProjectionNorm, configs.PLETable}
	case configs.Head:
		if c.TieEmbeddings {
			return []string{configs.TokenEmbedding}
		}
	}
	if layer < 0 {
		return []string{step}
	}
	parts := []string{step}
	switch step {
	case configs.QKV:
		parts = []string{configs.AttentionNorm, configs.QKV}
	case configs.Router:
		parts = []string{configs.FFNNorm, configs.Router}
	case configs.Gate:
		if c.Experts <= 1 {
			parts = []string{configs.FFNNorm, configs.Gate}
		}
	case arch.StepFFN:
		parts = []string{configs.Up}
	case arch.StepStream:
		parts = nil
		if c.PLEDim > 0 {
			parts = []string{configs.PLENorm}
		}
	case arch.StepAttention, arch.StepPLEMix:
		parts = nil
	}
	names := []string{}
	for _, p := range parts {
		names = append(names, configs.LayerTensor(layer, p))
	}
	return names
}

// compareSteps compares windows step by step.
func compareSteps(ctx context.Context, s *subject, weights *arch.Weights, windows []*stretch) (out Steps, err error) {
	t, err := newTwin(s, weights)
	if err != nil {
		return Steps{}, err
	}
	defer func() {
		if e := t.close(); err == nil {
			err = e
		}
	}()
	c := newStepComparison(s.config, t.graph.Steps())
	if err := t.engine.Trace(c.see); err != nil {
		return Steps{}, err
	}
	for _, w := range windows {
		if err := ctx.Err(); err != nil {
			return Steps{}, err
		}
		if err := t.run([]*stretch{w}); err != nil {
			return Steps{}, err
		}
		c.start(w)
		err := t.feed(w, func(int, []float32) error { return nil })
		if err := errors.Join(err, c.err); err != nil {
			return Steps{}, fmt.Errorf("story %d, the window from its token %d on: %w", w.story, w.first, err)
		}
	}
	return c.finish()
}

// stepComparison compares the steps of the engine, as they come, with those that the graph has kept.
type stepComparison struct {
	config *configs.Config
	steps  []arch.Step
	places map[stepKey]int // in steps
	seen   []int           // how many positions of a step
	out    Steps
	kinds  map[string]int // in out.Kinds

	window *stretch
	first  [3]int // window, position and step of out.First
	err    error
}

type stepKey struct {
	layer int
	name  string
}

func newStepComparison(c *configs.Config, steps []arch.Step) *stepComparison {
	s := &stepComparison{config: c, steps: steps, places: map[stepKey]int{}, seen: make([]int, len(steps)), kinds: map[string]int{}}
	for i, step := range steps {
		s.places[stepKey{step.Layer, step.Name}] = i
		if _, ok := s.kinds[step.Name]; !ok {
			s.kinds[step.Name] = len(s.out.Kinds)
			s.out.Kinds = append(s.out.Kinds, StepKind{Name: step.Name, Linear: slices.Contains(linearSteps, step.Name)})
		}
	}
	return s
}

// start says which window the engine is about to compute; the graph has it in its first rows.
func (c *stepComparison) start(w *stretch) {
	c.window = w
	c.out.Windows++
	c.out.Positions += len(w.inputs)
}

// see takes a step of the engine.
func (c *stepComparison) see(s engine.Step) {
	i, ok := c.places[stepKey{s.Layer, s.Name}]
	if !ok || len(s.Values) != c.steps[i].Width {
		c.err = fmt.Errorf("the engine shows %q of layer %d with %d values; the training graph has no such step", s.Name, s.Layer, len(s.Values))
		return
	}
	c.seen[i]++
	kind := &c.out.Kinds[c.kinds[s.Name]]
	kind.Values += int64(len(s.Values))
	for j, theirs := range c.steps[i].Values(s.Position) {
		if math.Float32bits(s.Values[j]) == math.Float32bits(theirs) {
			kind.Equal++
		} else if at := [3]int{c.window.index, s.Position, i}; c.out.First == nil || slices.Compare(at[:], c.first[:]) < 0 {
			c.first = at
			c.out.First = &Difference{Place: c.window.place(s.Position), Layer: s.Layer, Step: s.Name,
				Tensors: stepTensors(c.config, s.Layer, s.Name), Index: j, Engine: s.Values[j], Graph: theirs}
		}
	}
}

// finish adds the kinds up. It fails when a step of the graph was not shown by the engine at every position: equality
// would then say less than it seems to.
func (c *stepComparison) finish() (Steps, error) {
	for i, n := range c.seen {
		if n != c.out.Positions {
			return Steps{}, fmt.Errorf("the engine has shown %s of layer %d at %d of %d positions", c.steps[i].Name, c.steps[i].Layer, n, c.out.Positions)
		}
	}
	for _, k := range c.out.Kinds {
		if k.Linear {
			c.out.LinearValues += k.Values
			c.out.LinearEqual += k.Equal
		} else {
			c.out.OtherValues += k.Values
			c.out.OtherEqual += k.Equal
		}
	}
	return c.out, nil
}

// linearShare is the share of the outputs of linear layers that are equal to the bit.
func (s *Steps) linearShare() float64 { return float64(s.LinearEqual) / float64(s.LinearValues) }

// String names the place.
func (d *Difference) String() string {
	where := d.Step
	if d.Layer >= 0 {
		where = fmt.Sprintf("layer %d, %s", d.Layer, d.Step)
	}
	if len(d.Tensors) > 0 {
		where += " (reads " + strings.Join(d.Tensors, ", ") + ")"
	}
	return where
}
