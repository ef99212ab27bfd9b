package cost

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/chiplm/chiplm/engine/pie"
	"github.com/chiplm/chiplm/engine/pie/cycles"
	"github.com/chiplm/chiplm/export/targets"
)

// What the target says of the assembly is what the interpreter counts: within 5 % over all shapes of a kernel together, within
// 12 % for each.
func TestOursIsTheInterpreter(t *testing.T) {
	p := esp32s3(t).Profile("ours")
	for _, kernel := range pie.Kernels() {
		shapes := shapesOf(kernel)
		counted := make([]float64, len(shapes))
		for _, kernels := range (&BenchmarkKernel{Symbol: kernel.Symbol}).of(p) {
			var said, all float64
			for i, s := range shapes {
				if !serves(kernels[0], s) {
					continue
				}
				if counted[i] == 0 {
					counted[i] = interpreted(t, kernel, s)
				}
				x := 0.0
				for _, k := range kernels {
					m := BenchmarkKernel{Rows: s.Rows, Columns: s.Columns, Bits: s.Bits, Group: s.Group, N: max(s.N, s.Listed)}
					x += m.said(k)
				}
				if math.Abs(x/counted[i]-1) > 0.12 {
					t.Errorf("%s, %s %+v: the target says %.0f cycles, the interpreter counts %.0f", kernels[0].Work, kernel.Symbol, s, x, counted[i])
				}
				said, all = said+x, all+counted[i]
			}
			if all == 0 || math.Abs(said/all-1) > 0.05 {
				t.Errorf("%s, %s: over all shapes the target says %.0f cycles, the interpreter counts %.0f", kernels[0].Work, kernel.Symbol, said, all)
			}
			for _, k := range kernels {
				if k.Kind != "derived" {
					t.Errorf("%s, %s: executed cycles are derived, not of the kind %q", k.Work, k.Symbol, k.Kind)
				}
			}
		}
	}
}

// interpreted is the mean over some cases: how often sums of shares are read out depends on the shares.
func interpreted(t *testing.T, k pie.Kernel, s pie.Shape) float64 {
	r, err := cycles.New(k, pie.Files)
	if err != nil {
		t.Fatal(err)
	}
	values, cases := pie.Random, uint64(1)
	switch k.Symbol {
	case "chiplm_pie_mix":
		cases = 8
	case "chiplm_pie_exp": // none beyond the range, as scores of a model are
		values = pie.AllMost
	}
	sum := 0.0
	for seed := range cases {
		res, err := r.Run(t.Context(), cycles.Make(k, s, values, 1+seed))
		if err != nil {
			t.Fatal(err)
		}
		sum += float64(res.Cycles)
	}
	return sum / float64(cases)
}

// shapesOf are the shapes of tables, and of kernels that these show once or twice some more.
func shapesOf(k pie.Kernel) []pie.Shape {
	shapes := slices.Clone(k.Shapes)
	switch k.Symbol {
	case "chiplm_pie_add_columns4": // of 128 rows each core takes half
		shapes = nil
		for _, listed := range []int{4, 8, 13, 20, 32} {
			shapes = append(shapes, pie.Shape{Rows: 64, Columns: 320, Bits: 4, Listed: listed})
		}
	case "chiplm_pie_listed4_c128g64":
		for _, listed := range []int{8, 32, 200} {
			s := shapes[0]
			s.Listed = listed
			shapes = append(shapes, s)
		}
	case "chiplm_pie_rows4_c64g64":
		s := shapes[0]
		s.Rows = 384
		shapes = append(shapes, s)
	case "chiplm_pie_scale":
		shapes = append(shapes, pie.Shape{Rows: 32}, pie.Shape{Rows: 64})
	case "chiplm_pie_divide", "chiplm_pie_add", "chiplm_pie_blend", "chiplm_pie_gate", "chiplm_pie_rotate", "chiplm_pie_open",
		"chiplm_pie_used", "chiplm_pie_gain", "chiplm_pie_floats4":
		for _, n := range []int{64, 128, 256, 320} {
			shapes = append(shapes, pie.Shape{Columns: n})
		}
	}
	return shapes
}

// serves reports whether an entry of the target stands for a shape.
func serves(k *targets.Kernel, s pie.Shape) bool {
	switch k.Work {
	case targets.Columns: // its last step goes over the rows of the reference model
		return k.Symbol != "chiplm_pie_scale" || s.Rows == 128
	case targets.SiLU, targets.GELU: // a call takes 64 values
		return max(s.Columns, s.N) == 64
	case targets.Quantise, targets.HeadCode, targets.Softmax: // cases write codes up to a multiple of 64
		return k.Symbol != "chiplm_pie_codes" || s.Columns%64 == 0
	}
	return true
}

// No kernel is forgotten: each is in the target, but for those that a token of the reference model does not use.
func TestOursHasEveryKernel(t *testing.T) {
	unused := map[string]string{
		"chiplm_pie_columns4":  "for more columns of a group than one call takes, and rows that are no whole blocks",
		"chiplm_pie_add_sums":  "as columns4",
		"chiplm_pie_add_group": "as columns4",
		"chiplm_pie_widen":     "for scales of 16 bits",
	}
	p := esp32s3(t).Profile("ours")
	known := map[string]bool{}
	for _, k := range pie.Kernels() {
		known[k.Symbol] = true
		listed := slices.ContainsFunc(p.Kernels, func(x targets.Kernel) bool { return x.Symbol == k.Symbol })
		if why := unused[k.Symbol]; listed == (why != "") {
			t.Errorf("%s: in the target: %v; why it need not be: %q", k.Symbol, listed, why)
		}
	}
	for symbol := range unused {
		if !known[symbol] {
			t.Errorf("%s is no kernel", symbol)
		}
	}
	for i := range p.Kernels {
		if k := &p.Kernels[i]; k.Symbol != "" && !known[k.Symbol] {
			t.Errorf("the target has %s, which is no kernel", k.Symbol)
		}
	}
}

// The firmware searches for as many tokens as the target says.
func TestFirmwareSearchesAsTheTargetSays(t *testing.T) {
	text, err := os.ReadFile("../../engine/chiplm.h")
	if err != nil {
		t.Fatal(err)
	}
	most := esp32s3(t).Profile("ours").Reads.Most
	if m := regexp.MustCompile(`CHIPLM_SEARCH_MOST = (\d+)`).FindSubmatch(text); m == nil || string(m[1]) != strconv.Itoa(most) {
		t.Errorf("the target says %d, the firmware %q", most, m)
	}
}

// A board measures each of them by its symbol, and nothing that calibration has no use for.
func TestBoardMeasuresEveryKernel(t *testing.T) {
	text, err := os.ReadFile("../../firmware/board/kernel_times.c")
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]bool{}
	for _, m := range regexp.MustCompile(`\{"(chiplm_pie_\w+)",`).FindAllStringSubmatch(string(text), -1) {
		measured[m[1]] = true
	}
	p := esp32s3(t).Profile("ours")
	used := map[string]bool{}
	for i := range p.Kernels {
		used[p.Kernels[i].Symbol] = true
	}
	for _, k := range pie.Kernels() {
		if measured[k.Symbol] != used[k.Symbol] {
			t.Errorf("%s: measured by the board: %v, in the target: %v", k.Symbol, measured[k.Symbol], used[k.Symbol])
		}
	}
}
