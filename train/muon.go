package train

import (
	"errors"
	"fmt"
	"math"

	"gorgonia.org/gorgonia"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/qat/pages"
)

// Muon moves matrices by the orthogonalised running mean of their gradients (Jordan and others, "Muon: An optimizer for
// hidden layers in neural networks", 2024): with momentum in Nesterov's form, a fixed number of Newton-Schulz steps, and a
// step that is max(1, rows/cols)^(1/2) larger for tall matrices. Weight decay is decoupled. With NormaliseRows, rows of
// the result are also brought to equal size by a running mean of their squares, the whole keeping its size (Li and others,
// "NorMuon: Making Muon more efficient and scalable", 2025).
//
// It is a [gorgonia.Solver]. Every matrix is one thread's work, so the result does not depend on their number. The size of
// gradients does not matter to it, so neither do averaging and clipping, but for the momentum: GradScale is applied first.
//
// A solver belongs to one list of parameters: the first Step takes the sizes of its state from it, and every later Step
// must give the same list in the same order. Each must be a matrix, or several of equal shape one after the other.
type Muon struct {
	LR            float64 // learning rate of the next step
	Momentum      float64
	Steps         int // Newton-Schulz steps
	WeightDecay   float64
	NormaliseRows bool
	Beta2         float64     // decay of the mean of squares, with NormaliseRows
	Parts         []int       // how many matrices each parameter holds; nil: one each
	GradScale     float64     // every gradient is multiplied by it first; 0 is taken as 1
	Threads       int         // goroutines a step may use; 0 is taken as 1
	m, rows       [][]float32 // running means of gradients, and of the squares of each row

	steps    int
	work     []muonWork // of each thread
	matrices []muonMatrix
	profiles []*profile.Profile // nil, or one a thread
}

// muonMatrix is a matrix as a step finds it.
type muonMatrix struct {
	param         int
	rows, cols    int
	w, g, m, mean []float32
}

// muonWork is a thread's memory: the matrix under way, its next form, and two square ones.
type muonWork struct{ x, y, a, b []float32 }

var _ gorgonia.Solver = (*Muon)(nil)

// The coefficients of the Newton-Schulz step x <- a x + b (x x') x + c (x x')^2 x, which takes singular values from all of
// (0, 1] to the neighbourhood of 1 within five steps (Jordan and others, 2024).
const schulzA, schulzB, schulzC = 3.4445, -4.7750, 2.0315

// normEps keeps the first division of a step finite where a gradient is zero.
const normEps = 1e-7

// Moments gives the running means of the gradients, those of the squares of each row (nil without NormaliseRows), and the
// number of steps taken. The slices are the solver's own: read them between steps only. They are nil before the first step.
func (o *Muon) Moments() (m, rows [][]float32, steps int) { return o.m, o.rows, o.steps }

// SetMoments puts the solver where [Muon.Moments] found another one. It takes over the slices.
func (o *Muon) SetMoments(m, rows [][]float32, steps int) error {
	if o.NormaliseRows != (rows != nil) || rows != nil && len(m) != len(rows) {
		return fmt.Errorf("muon: %d means of gradients but %d of rows", len(m), len(rows))
	}
	if steps < 0 {
		return fmt.Errorf("muon: %d steps taken", steps)
	}
	o.m, o.rows, o.steps = m, rows, steps
	return nil
}

// Step updates every parameter from its gradient. Values and gradients are dense float32 tensors. It stops at a parameter
// whose size is not that of its state before it changes any. A weight that ends infinite or NaN is an error that names the
// first such parameter; the weights are changed by then.
func (o *Muon) Step(params []gorgonia.ValueGrad) error {
	if err := o.prepare(params); err != nil {
		return err
	}
	o.steps++
	bad := noneBad(params)
	share(o.Threads, len(o.matrices), func(thread, i int) {
		m := o.matrices[i]
		if !o.update(m, o.work[thread]) {
			bad.note(m.param)
		}
		if thread < len(o.profiles) {
			o.profiles[thread].Lap(schulzCost(m.rows, m.cols, o.Steps))
		}
	})
	return bad.err("muon", params)
}

// schulzCost is the arithmetic of a matrix's update.
func schulzCost(rows, cols, steps int) profile.Cost {
	small, large := min(rows, cols), max(rows, cols)
	return profile.Product(profile.Optimiser, steps*small, small, 2*large+small)
}

// prepare takes the matrices out of the parameters, and makes the state of the first step and the threads' memory.
func (o *Muon) prepare(params []gorgonia.ValueGrad) error {
	first := o.m == nil
	if !first && len(params) != len(o.m) || o.Parts != nil && len(params) != len(o.Parts) {
		return fmt.Errorf("muon: %d parameters, but state for %d and parts for %d", len(params), len(o.m), len(o.Parts))
	}
	o.matrices = o.matrices[:0]
	means, squares := o.m, o.rows // kept only when nothing is refused
	large, small := 0, 0
	for i, p := range params {
		parts := 1
		if o.Parts != nil {
			parts = o.Parts[i]
		}
		w, g, rows, cols, err := muonParameter(p, parts)
		if err == nil && !first && (len(means[i]) != len(w) || o.NormaliseRows && len(squares[i]) != rows) {
			err = fmt.Errorf("%d weights in %d rows, but state for others", len(w), rows)
		}
		if err != nil {
			return fmt.Errorf("muon: %s: %w", parameterName(p, i), err)
		}
		if first {
			means = append(means, pages.Make[float32](len(w)))
			if o.NormaliseRows {
				squares = append(squares, make([]float32, rows))
			}
		}
		rows /= parts
		for part := range parts {
			from, to := part*rows*cols, (part+1)*rows*cols
			m := muonMatrix{param: i, rows: rows, cols: cols, w: w[from:to], g: g[from:to], m: means[i][from:to]}
			if o.NormaliseRows {
				m.mean = squares[i][part*rows : (part+1)*rows]
			}
			o.matrices = append(o.matrices, m)
		}
		large, small = max(large, rows*cols), max(small, min(rows, cols))
	}
	o.m, o.rows = means, squares
	for len(o.work) < max(o.Threads, 1) {
		o.work = append(o.work, muonWork{})
	}
	for i := range o.work {
		if w := &o.work[i]; len(w.x) < large || len(w.a) < small*small {
			*w = muonWork{pages.Make[float32](large), pages.Make[float32](large), pages.Make[float32](small * small), pages.Make[float32](small * small)}
		}
	}
	return nil
}

// muonParameter takes weights, gradient and shape out of a parameter that holds a number of matrices.
func muonParameter(p gorgonia.ValueGrad, parts int) (w, g []float32, rows, cols int, err error) {
	w, g, matrix, err := denseParameter(p)
	switch {
	case err != nil:
		return nil, nil, 0, 0, err
	case !matrix:
		return nil, nil, 0, 0, errors.New("it is a vector: only matrices can be orthogonalised")
	case len(w) != len(g):
		return nil, nil, 0, 0, fmt.Errorf("%d weights, %d gradients", len(w), len(g))
	}
	if own, ok := p.(*Parameter); ok {
		cols = own.cols
	} else {
		shape := p.Value().Shape()
		cols = shape[len(shape)-1]
	}
	rows = len(w) / cols
	if parts < 1 || rows%parts != 0 {
		return nil, nil, 0, 0, fmt.Errorf("its %d rows do not divide into %d matrices", rows, parts)
	}
	return w, g, rows, cols, nil
}

// update moves one matrix, and says whether its weights are finite.
func (o *Muon) update(m muonMatrix, work muonWork) bool {
	scale := o.GradScale
	if scale == 0 {
		scale = 1
	}
	n := m.rows * m.cols
	x, y := work.x[:n], work.y[:n]
	kernels.Momentum(m.g, float32(scale), float32(1-o.Momentum), float32(o.Momentum), m.m, x)
	x = orthogonalise(x, y, work.a, work.b, m.rows, m.cols, o.Steps)
	if o.NormaliseRows {
		o.normaliseRows(x, m.mean, m.cols)
	}
	step := o.LR * math.Sqrt(max(1, float64(m.rows)/float64(m.cols)))
	return kernels.Blend(float32(-step), x, float32(1-float64(o.LR*o.WeightDecay)), m.w)
}

// orthogonalise brings the singular values of x, rows x cols, near to 1, and returns the one of x and y in which the
// result is. a and b are work of the smaller side squared.
func orthogonalise(x, y, a, b []float32, rows, cols, steps int) []float32 {
	norm := math.Sqrt(kernels.SumSquares(x))
	kernels.Scale(x, float32(1/max(norm, normEps)))
	s := min(rows, cols)
	a, b = a[:s*s], b[:s*s]
	square := kernels.M(a, s)
	for range steps {
		mx, my := kernels.M(x, cols), kernels.M(y, cols)
		if rows <= cols {
			kernels.Gemm(s, s, cols, mx, mx.T(), false, square)
		} else {
			kernels.Gemm(s, s, rows, mx.T(), mx, false, square)
		}
		kernels.Gemm(s, s, s, square, square, false, kernels.M(b, s))
		kernels.Blend(schulzB, a, schulzC, b)
		if rows <= cols {
			kernels.Gemm(rows, cols, s, kernels.M(b, s), mx, false, my)
		} else {
			kernels.Gemm(rows, cols, s, mx, kernels.M(b, s), false, my)
		}
		kernels.Blend(schulzA, x, 1, y)
		x, y = y, x
	}
	return x
}

// normaliseRows divides each row by the root of the running mean of its squares, and brings the whole back to its size.
func (o *Muon) normaliseRows(x, mean []float32, cols int) {
	bias := 1 - float64(power(o.Beta2, o.steps))
	before := kernels.SumSquares(x)
	for r := range mean {
		row := x[r*cols : (r+1)*cols]
		square := kernels.SumSquares(row) / float64(cols)
		m := float64(o.Beta2*float64(mean[r])) + float64((1-o.Beta2)*square)
		mean[r] = float32(m)
		kernels.Scale(row, float32(1/(math.Sqrt(m/bias)+normEps)))
	}
	if after := kernels.SumSquares(x); after > 0 {
		kernels.Scale(x, float32(math.Sqrt(before/after)))
	}
}
