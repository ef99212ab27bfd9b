package eval

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/engine"
)

// A mixture of experts of which each token reads one: the router's values, in float, and with them the chosen expert are
// those of the training graph in exact mode, bit for bit, on each of a thousand tokens and more.
func TestRouterChoosesAsTheTrainingGraph(t *testing.T) {
	const experts, tokens = 5, 1000
	dir, _ := tinyRunOf(t, wholeModel+fmt.Sprintf("experts: %d\n", experts), nil)
	s, err := openTwins(context.Background(), dir, "", "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	weights, err := arch.WeightsOf(s.config, s.checkpoint.Tensors)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newTwin(s, weights)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()

	steps := map[stepKey]arch.Step{}
	for _, step := range w.graph.Steps() {
		steps[stepKey{step.Layer, step.Name}] = step
	}
	routed := 0
	chosen := make([][experts]int, s.config.NLayers)
	see := func(step engine.Step) {
		switch step.Name {
		case configs.Router, configs.Gate, arch.StepFFN, configs.Down: // the latter three show which expert worked
		default:
			return
		}
		theirs := steps[stepKey{step.Layer, step.Name}].Values(step.Position)
		for i, v := range step.Values {
			if math.Float32bits(v) != math.Float32bits(theirs[i]) && !t.Failed() { // the first is enough
				t.Errorf("layer %d, position %d, %s: value %d is %v (%08x), the graph has %v (%08x)", step.Layer, step.Position, step.Name, i, v,
					math.Float32bits(v), theirs[i], math.Float32bits(theirs[i]))
			}
		}
		if step.Name != configs.Router {
			return
		}
		best := 0
		for e, v := range step.Values {
			if v > step.Values[best] {
				best = e
			}
		}
		if got := w.graph.Choices(step.Layer)[step.Position]; int(got) != best && !t.Failed() {
			t.Errorf("layer %d, position %d: the graph chose expert %d, the engine's router says %d", step.Layer, step.Position, got, best)
		}
		routed++
		chosen[step.Layer][best]++
	}
	if err := w.engine.Trace(see); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	fed := 0
	for fed < tokens && !t.Failed() {
		window := &stretch{}
		for range s.config.ContextLength {
			window.inputs = append(window.inputs, rng.Int32N(int32(s.config.VocabSize)))
			window.targets = append(window.targets, -1)
		}
		if err := w.run([]*stretch{window}); err != nil {
			t.Fatal(err)
		}
		if err := w.feed(window, func(int, []float32) error { return nil }); err != nil {
			t.Fatal(err)
		}
		fed += len(window.inputs)
	}
	if routed != fed*s.config.NLayers && !t.Failed() {
		t.Errorf("%d choices were compared, want %d", routed, fed*s.config.NLayers)
	}
	for l, counts := range chosen {
		for e, n := range counts {
			if n == 0 && !t.Failed() {
				t.Errorf("no token of %d went to expert %d of layer %d: the test says nothing of it", fed, e, l)
			}
		}
	}
}

// A token reads one expert of each layer and no other: every row of its gate, at most so much of its up and down.
func TestATokenReadsOneExpert(t *testing.T) {
	const experts = 5
	dir, _ := tinyRunOf(t, wholeModel+fmt.Sprintf("experts: %d\n", experts), nil)
	s, err := openTwins(context.Background(), dir, "", "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	e, err := engine.New(s.image, engine.Options{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for id := range int32(s.config.ContextLength) {
		e.ClearReads()
		if err := e.Forward([]int32{id}, nil); err != nil {
			t.Fatal(err)
		}
		reads, err := e.Reads()
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range s.image.Tensors() {
			part := w.Name[strings.LastIndexByte(w.Name, '.')+1:]
			one := int64(w.CodesBytes+w.ScaleBytes) / experts
			if part == configs.Gate && reads.Tensors[i] != one || (part == configs.Up || part == configs.Down) && reads.Tensors[i] > one {
				t.Errorf("token %d reads %d bytes of %s, an expert has %d", id, reads.Tensors[i], w.Name, one)
			}
		}
	}
}
