package arch

import (
	"fmt"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat/pages"
)

// Weights are the parameters of a model, in the order in which checkpoints store them.
type Weights struct {
	Tensors []configs.Tensor
	Data    [][]float32 // Data[i] holds Tensors[i].Len() floats, row after row
	index   map[string]int
}

// NewWeights makes the parameters of a model, all zero.
func NewWeights(cfg *configs.Config) *Weights {
	w := &Weights{Tensors: cfg.Tensors(), index: map[string]int{}}
	for i, t := range w.Tensors {
		w.Data = append(w.Data, pages.Make[float32](t.Len()))
		w.index[t.Name] = i
	}
	return w
}

// Get is the tensor of that name, or nil.
func (w *Weights) Get(name string) []float32 {
	if i, ok := w.index[name]; ok {
		return w.Data[i]
	}
	return nil
}

// WeightsOf copies the parameters of a model from tensors by name. It fails when one is missing or of another size.
func WeightsOf(cfg *configs.Config, tensors map[string][]float32) (*Weights, error) {
	w := NewWeights(cfg)
	for i, t := range w.Tensors {
		from, ok := tensors[t.Name]
		if !ok || len(from) != t.Len() {
			return nil, fmt.Errorf("tensor %s has %d values where the configuration has %d", t.Name, len(from), t.Len())
		}
		copy(w.Data[i], from)
	}
	return w, nil
}
