package engine

import (
	"fmt"
	"math"
	"slices"
)

// Tracing holds the steps of a run, to be compared with those of another.
type Tracing struct {
	steps map[stepKey][]float32
	order []stepKey // in which the steps of position 0 were seen
}

type stepKey struct {
	position, layer int
	name            string
}

// Record keeps every step that the engine computes from now on; steps of the same position replace each other.
func (e *Engine) Record() (*Tracing, error) {
	t := &Tracing{steps: map[stepKey][]float32{}}
	return t, e.Trace(t.Add)
}

// Add keeps a step.
func (t *Tracing) Add(s Step) {
	if t.steps == nil {
		t.steps = map[stepKey][]float32{}
	}
	at := stepKey{0, s.Layer, s.Name}
	if !slices.Contains(t.order, at) {
		t.order = append(t.order, at)
	}
	at.position = s.Position
	t.steps[at] = slices.Clone(s.Values)
}

// Difference is a place where two runs differ.
type Difference struct {
	Position, Layer int
	Name            string
	Index           int     // of the value
	A, B            float32 // NaN where a run has no such value
}

// String names the place: layer, tensor, position, value.
func (d Difference) String() string {
	where := fmt.Sprintf("layer %d, %s", d.Layer, d.Name)
	if d.Layer < 0 {
		where = d.Name
	}
	return fmt.Sprintf("first difference at position %d in %s, value %d: %v (%#08x) and %v (%#08x)", d.Position, where, d.Index,
		d.A, math.Float32bits(d.A), d.B, math.Float32bits(d.B))
}

// FirstDifference is the first place in the order of computation where two runs differ in a bit: the first position, and
// in it the first step. It is nil when all steps that a has are the same in b.
func FirstDifference(a, b *Tracing) *Difference {
	positions := 0
	for k := range a.steps {
		positions = max(positions, k.position+1)
	}
	nan := float32(math.NaN())
	for p := range positions {
		for _, at := range a.order {
			at.position = p
			x, ok := a.steps[at]
			if !ok {
				continue
			}
			y := b.steps[at]
			for i, v := range x {
				d := Difference{Position: p, Layer: at.layer, Name: at.name, Index: i, A: v, B: nan}
				if i < len(y) {
					d.B = y[i]
				}
				if i >= len(y) || math.Float32bits(v) != math.Float32bits(y[i]) {
					return &d
				}
			}
		}
	}
	return nil
}
