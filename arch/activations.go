package arch

import (
	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/qat/fakequant"
)

// activations are the rows that enter matrix products, quantised once for all products that read them.
type activations struct {
	rows, cols int
	exact      bool
	mode       kernels.Mode
	raw        []float32 // as they came
	data       []float32 // as products with quantised weights read them: raw, values or codes
	own        []float32 // the buffer for data
	scales     []float32 // one a row, in mode Codes
	tmp        []float32
}

// activations makes the buffers for rows of cols floats that meet weights of mode w and at most out rows.
func (b *builder) activations(rows, cols, out int, w kernels.Mode) *activations {
	a := &activations{rows: rows, cols: cols, exact: b.opt.Exact, mode: b.activationMode()}
	if w == kernels.Float {
		a.mode = kernels.Float
	}
	if a.mode != kernels.Float {
		a.own = make([]float32, rows*cols)
	}
	if a.mode == kernels.Codes {
		a.scales = make([]float32, rows)
		a.tmp = make([]float32, kernels.Block*out)
	}
	return a
}

// load takes rows of activations and quantises them.
func (a *activations) load(x []float32, rows int) {
	a.raw, a.data, a.rows = x, x, rows
	switch a.mode {
	case kernels.Values:
		fakequant.Vectors(x, rows, a.cols, fakequant.Values, a.own, nil)
		a.data = a.own
	case kernels.Codes:
		fakequant.Vectors(x, rows, a.cols, fakequant.Codes, a.own, a.scales)
		a.data = a.own
	}
}

// product computes y [rows, out] for loaded rows from to from+rows: activations times rows first to first+out of w.
func (a *activations) product(w *weight, data []float32, first, out, from, rows int, y kernels.Mat) {
	x := a.data[from*a.cols:]
	data = data[first*w.cols:]
	switch {
	case w.mode == kernels.Codes:
		groups := len(w.quant.Scales()) / w.rows
		kernels.ProductCodes(x, a.scales[from:], rows, a.cols, w.spec, data, w.quant.Scales()[first*groups:], out, y, a.tmp)
	case w.mode == kernels.Float && a.exact:
		kernels.ProductSum8(a.raw[from*a.cols:], rows, a.cols, data, out, y)
	default:
		kernels.Gemm(rows, out, a.cols, kernels.M(x, a.cols), kernels.M(data, w.cols).T(), false, y)
	}
}
