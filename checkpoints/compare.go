package checkpoints

import (
	"math"

	"github.com/chiplm/chiplm/configs"
)

// TensorStats sums up one tensor. Mean, RMS and MaxAbs are over the finite values.
type TensorStats struct {
	Name      string  `json:"name"`
	Shape     []int   `json:"shape"`
	Bits      int     `json:"bits"`
	Group     int     `json:"group"` // columns that share a scale; 0 for a row, or with 32 bits
	Mean      float64 `json:"mean"`
	RMS       float64 `json:"rms"`
	MaxAbs    float64 `json:"max_abs"`
	NonFinite int     `json:"non_finite"` // values that are NaN or infinite
}

// Stats sums up the weights of a checkpoint, in the order of the configuration.
func (c *Checkpoint) Stats() []TensorStats {
	var all []TensorStats
	for _, t := range c.Config.Tensors() {
		s := TensorStats{Name: t.Name, Shape: t.Shape, Bits: t.Quant.Bits, Group: t.Quant.Group}
		if s.Bits == 32 {
			s.Group = 0
		}
		sum, squares, n := 0.0, 0.0, 0
		for _, v := range c.Tensors[t.Name] {
			x := float64(v)
			if math.IsNaN(x) || math.IsInf(x, 0) {
				s.NonFinite++
				continue
			}
			n++
			sum += x
			squares += x * x
			s.MaxAbs = max(s.MaxAbs, math.Abs(x))
		}
		if n > 0 {
			s.Mean, s.RMS = sum/float64(n), math.Sqrt(squares/float64(n))
		}
		all = append(all, s)
	}
	return all
}

// TensorDifference compares one tensor of two checkpoints. The differences are over the pairs in which both values
// are finite.
type TensorDifference struct {
	Name       string  `json:"name"`
	ShapeA     []int   `json:"shape_a,omitempty"` // absent when A has no such tensor
	ShapeB     []int   `json:"shape_b,omitempty"`
	EqualBytes bool    `json:"equal_bytes"`
	Comparable bool    `json:"comparable"` // the shapes are equal
	MaxAbsDiff float64 `json:"max_abs_diff"`
	RMSDiff    float64 `json:"rms_diff"`
	Changed    int     `json:"changed"` // values whose bits differ
}

// Comparison is what differs between two checkpoints.
type Comparison struct {
	EqualModels    bool                 `json:"equal_models"` // the bytes of model.safetensors are the same
	EqualTokenizer bool                 `json:"equal_tokenizer"`
	Config         []configs.Difference `json:"config"`
	Tensors        []TensorDifference   `json:"tensors"`
}

// Compare lists the differences of two checkpoints: the keys of the configuration that differ, and every tensor.
func Compare(a, b *Checkpoint) (*Comparison, error) {
	keys, err := configs.Differences(a.Config, b.Config)
	if err != nil {
		return nil, err
	}
	out := &Comparison{
		EqualModels:    a.ModelSHA256 == b.ModelSHA256,
		EqualTokenizer: a.State.TokenizerHash == b.State.TokenizerHash,
		Config:         append([]configs.Difference{}, keys...),
	}
	shapesB := map[string][]int{}
	for _, t := range b.Config.Tensors() {
		shapesB[t.Name] = t.Shape
	}
	inA := map[string]bool{}
	for _, t := range a.Config.Tensors() {
		inA[t.Name] = true
		out.Tensors = append(out.Tensors, compareTensor(t.Name, t.Shape, shapesB[t.Name], a.Tensors[t.Name], b.Tensors[t.Name]))
	}
	for _, t := range b.Config.Tensors() {
		if !inA[t.Name] {
			out.Tensors = append(out.Tensors, compareTensor(t.Name, nil, t.Shape, nil, b.Tensors[t.Name]))
		}
	}
	return out, nil
}

func compareTensor(name string, shapeA, shapeB []int, a, b []float32) TensorDifference {
	d := TensorDifference{Name: name, ShapeA: shapeA, ShapeB: shapeB}
	if shapeText(shapeA) != shapeText(shapeB) {
		return d
	}
	d.Comparable = true
	squares, n := 0.0, 0
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			d.Changed++
		}
		// A difference of finite float32 values is finite in float64.
		if x := float64(a[i]) - float64(b[i]); !math.IsNaN(x) && !math.IsInf(x, 0) {
			d.MaxAbsDiff = max(d.MaxAbsDiff, math.Abs(x))
			squares += x * x
			n++
		}
	}
	if n > 0 {
		d.RMSDiff = math.Sqrt(squares / float64(n))
	}
	d.EqualBytes = d.Changed == 0
	return d
}
