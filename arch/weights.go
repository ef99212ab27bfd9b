package arch

import (
	"github.com/chiplm/chiplm/configs"
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
		w.Data = append(w.Data, make([]float32, t.Len()))
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
