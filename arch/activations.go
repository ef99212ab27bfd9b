package arch

import (
	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/qat/fakequant"
	"github.com/chiplm/chiplm/qat/pages"
)

// Bytes that quantisation reads and writes for an element: itself, its code and, for weights, its value.
const (
	activationBytes = 4 + 1
	weightBytes     = 4 + 1 + 4
)

// activations are the rows that enter matrix products, quantised once for all products that read them.
type activations struct {
	rows, cols int
	exact      bool
	mode       kernels.Mode
	raw        []float32 // as they came
	codes      []uint8   // in mode Codes, with
	scales     []float32 // one a row
	profile    *profile.Profile
}

// activations makes the buffers for rows of cols floats that meet weights of mode w.
func (b *builder) activations(rows, cols int, w kernels.Mode) *activations {
	a := &activations{rows: rows, cols: cols, exact: b.opt.Exact, mode: w, profile: b.opt.Profile}
	if a.mode == kernels.Codes {
		a.codes, a.scales = pages.Make[uint8](rows*4*fakequant.Quads(cols)), make([]float32, rows)
	}
	return a
}

// load takes rows of activations and quantises them.
func (a *activations) load(x []float32, rows int) {
	a.raw, a.rows = x, rows
	if a.mode != kernels.Codes {
		return
	}
	fakequant.Activations(x, rows, a.cols, nil, a.codes, a.scales)
	a.profile.Lap(profile.Cost{Kind: profile.QuantiseActivations, Bytes: activationBytes * int64(rows*a.cols)})
}

// product computes y for loaded rows from to from+rows: activations times part of w, one of w.parts equal shares of its
// rows; data holds the values of all of w.
func (a *activations) product(w *weight, data []float32, part, from, rows int, y kernels.Mat) {
	out := w.rows / w.parts
	data = data[part*out*w.cols:]
	switch {
	case w.mode == kernels.Codes:
		kernels.ProductIntegers(a.codes[from*4*fakequant.Quads(a.cols):], a.scales[from:], rows, w.quant.Packed(), part, y)
	case w.mode == kernels.Float && a.exact:
		kernels.ProductSum8(a.raw[from*a.cols:], rows, a.cols, data, out, y)
	default:
		kernels.Gemm(rows, out, a.cols, kernels.M(a.raw[from*a.cols:], a.cols), kernels.M(data, w.cols).T(), false, y)
	}
}

// gradient computes dw, the gradient of a weight that rows from to from+rows met: dy transposed times what the product
// read. It adds to dw when add is set.
func (a *activations) gradient(dy kernels.Mat, out, from, rows int, add bool, dw []float32) {
	if a.mode == kernels.Codes {
		kernels.GemmCodes(out, a.cols, rows, dy.T(), a.codes[from*4*fakequant.Quads(a.cols):], a.scales[from:], add, kernels.M(dw, a.cols))
		return
	}
	kernels.Gemm(out, a.cols, rows, dy.T(), kernels.M(a.raw[from*a.cols:], a.cols), add, kernels.M(dw, a.cols))
}
