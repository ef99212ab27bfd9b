package cost

import (
	"math"
	"testing"

	"github.com/chiplm/chiplm/engine/pie"
	"github.com/chiplm/chiplm/engine/pie/cycles"
	"github.com/chiplm/chiplm/export/targets"
)

// What the target says of the assembly is what the interpreter counts, over the shapes of the reference model: within 5 % over
// all shapes of a kernel together, within 12 % for each.
func TestOursIsTheInterpreter(t *testing.T) {
	p := esp32s3(t).Profile("ours")
	for i := range p.Kernels {
		k := &p.Kernels[i]
		if k.Symbol == "" {
			continue
		}
		kernel, err := cycles.Find(k.Symbol)
		if err != nil {
			t.Error(err)
			continue
		}
		var said, counted float64
		for _, s := range kernel.Shapes {
			if !serves(k, s) {
				continue
			}
			n, err := cycles.Of(k.Symbol, s)
			if err != nil {
				t.Fatal(err)
			}
			m := BenchmarkKernel{Rows: s.Rows, Columns: s.Columns, Bits: s.Bits, Group: s.Group, N: max(s.N, s.Listed)}
			x := m.said(k)
			if math.Abs(x/n-1) > 0.12 {
				t.Errorf("%s, %s %+v: the target says %.0f cycles, the interpreter counts %.0f", k.Work, k.Symbol, s, x, n)
			}
			said, counted = said+x, counted+n
		}
		if counted == 0 || math.Abs(said/counted-1) > 0.05 {
			t.Errorf("%s, %s: over all shapes the target says %.0f cycles, the interpreter counts %.0f", k.Work, k.Symbol, said, counted)
		}
	}
}

// serves reports whether a kernel of the target stands for a shape: those of attention are made for heads of 32 and, in the
// softmax, are called with as many values as there are positions.
func serves(k *targets.Kernel, s pie.Shape) bool {
	return k.Work != targets.Scores && k.Work != targets.Mix || s.Columns == 32
}
