package fakequant

import (
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
)

// TestStraightThrough differentiates a sum of squares of quantised weights: the gradient must be twice the quantised
// weights, as if quantisation were the identity.
func TestStraightThrough(t *testing.T) {
	w := []float32{0.3, -0.71, 0.02, 0.5, 1.1, -0.4}
	spec := qat.Spec{Bits: 4, Group: 0, Scale: configs.ScaleF32}
	g := gorgonia.NewGraph()
	wn := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("w"),
		gorgonia.WithValue(tensor.New(tensor.WithShape(2, 3), tensor.WithBacking(w))))
	op, err := New("w", spec, 2, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	q := gorgonia.Must(gorgonia.ApplyOp(op, wn))
	cost := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.Square(q))))
	grads, err := gorgonia.Grad(cost, wn)
	if err != nil {
		t.Fatal(err)
	}
	vm := gorgonia.NewTapeMachine(g)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		t.Fatal(err)
	}
	m, err := qat.Quantise(spec, w, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 6)
	m.Dequantise(want)
	for i, v := range grads[0].Value().Data().([]float32) {
		if v != 2*want[i] {
			t.Errorf("gradient %d is %v, want %v", i, v, 2*want[i])
		}
	}
}
