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

// errWeightNotFinite says that an update made a weight infinite or NaN.
var errWeightNotFinite = errors.New("a weight is not finite after the update")

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019), in
// the form PyTorch gives it. It is a [gorgonia.Solver]. Decay falls on matrices only: values of two or more
// dimensions. One pass over memory updates a tensor; since every element is on its own, the pass may be split over
// goroutines without changing a bit.
//
// A solver belongs to one list of parameters: the first Step takes its moments' sizes from it, and every later Step
// must give the same list in the same order.
type AdamW struct {
	LR          float64 // learning rate of the next step
	Beta1       float64
	Beta2       float64
	Eps         float64
	WeightDecay float64
	GradScale   float64   // every gradient is multiplied by it first: averaging and clipping; 0 is taken as 1
	Threads     int       // goroutines a step may use; 0 is taken as 1
	Rates       []float64 // LR is multiplied by it for each parameter; nil: by 1

	steps    int // steps taken
	m, v     [][]float32
	tensors  []adamwTensor
	pieces   []piece
	profiles []*profile.Profile // nil, or one a thread
}

// adamwTensor is a parameter as a step finds it.
type adamwTensor struct {
	w, g []float32
	k    kernels.AdamW
}

var _ gorgonia.Solver = (*AdamW)(nil)

// Moments gives the running means of the gradients and of their squares, one slice a parameter, and the number of
// steps taken. The slices are the solver's own: read them between steps only. They are nil before the first step.
func (a *AdamW) Moments() (m, v [][]float32, steps int) { return a.m, a.v, a.steps }

// SetMoments puts the solver where [AdamW.Moments] found another one. It takes over the slices.
func (a *AdamW) SetMoments(m, v [][]float32, steps int) error {
	if len(m) != len(v) {
		return fmt.Errorf("adamw: %d first moments but %d second moments", len(m), len(v))
	}
	for i := range m {
		if len(m[i]) != len(v[i]) {
			return fmt.Errorf("adamw: moments %d have %d and %d elements", i, len(m[i]), len(v[i]))
		}
	}
	if steps < 0 {
		return fmt.Errorf("adamw: %d steps taken", steps)
	}
	a.m, a.v, a.steps = m, v, steps
	return nil
}

// Step updates every parameter from its gradient. Values and gradients are dense float32 tensors. It stops at a
// parameter of another size than its moments before it changes any. A weight that ends infinite or NaN is an error
// that names the first such parameter; the weights are changed by then.
func (a *AdamW) Step(params []gorgonia.ValueGrad) error {
	if err := a.prepare(params); err != nil {
		return err
	}
	bad := noneBad(params)
	a.idle()
	share(a.Threads, len(a.pieces), func(thread, i int) {
		p := a.pieces[i]
		t := a.tensors[p.param]
		m, v := a.m[p.param], a.v[p.param]
		if !t.k.Update(t.w[p.from:p.to], m[p.from:p.to], v[p.from:p.to], t.g[p.from:p.to]) {
			bad.note(p.param)
		}
		if thread < len(a.profiles) { // weight and moments read and written, gradient read
			a.profiles[thread].Lap(profile.Memory(profile.Optimiser, 7*(p.to-p.from)))
		}
	})
	a.idle()
	return bad.err("adamw", params)
}

// idle charges the time up to here of threads that wait for others.
func (a *AdamW) idle() {
	if len(a.profiles) > 1 {
		for _, p := range a.profiles {
			p.Lap(profile.Cost{Kind: profile.Waiting})
		}
	}
}

// prepare takes the slices out of the parameters, makes the moments of the first step, and counts the step.
func (a *AdamW) prepare(params []gorgonia.ValueGrad) error {
	first := a.m == nil
	if !first && len(params) != len(a.m) {
		return fmt.Errorf("adamw: %d parameters, but moments for %d", len(params), len(a.m))
	}
	if a.Rates != nil && len(a.Rates) != len(params) {
		return fmt.Errorf("adamw: %d parameters, but rates for %d", len(params), len(a.Rates))
	}
	a.tensors, a.pieces = a.tensors[:0], a.pieces[:0]
	for i, p := range params {
		w, g, matrix, err := denseParameter(p)
		switch {
		case err != nil:
		case len(w) != len(g):
			err = fmt.Errorf("%d weights, %d gradients", len(w), len(g))
		case !first && len(w) != len(a.m[i]):
			err = fmt.Errorf("%d weights, %d moments", len(w), len(a.m[i]))
		}
		if err != nil {
			return fmt.Errorf("adamw: %s: %w", parameterName(p, i), err)
		}
		rate := 1.0
		if a.Rates != nil {
			rate = a.Rates[i]
		}
		a.tensors = append(a.tensors, adamwTensor{w, g, a.coefficients(a.steps+1, rate, matrix)})
		a.pieces = cut(a.pieces, i, len(w), pieceSize)
	}
	if first {
		for _, t := range a.tensors {
			a.m, a.v = append(a.m, pages.Make[float32](len(t.w))), append(a.v, pages.Make[float32](len(t.w)))
		}
	}
	a.steps++
	return nil
}

// coefficients are the numbers of a step, counted from 1, for a parameter. The conversions keep compilers from fusing
// products into sums, which some processors would round otherwise than others.
func (a *AdamW) coefficients(step int, rate float64, matrix bool) kernels.AdamW {
	scale := a.GradScale
	if scale == 0 {
		scale = 1
	}
	bias1 := 1 - float64(power(a.Beta1, step))
	bias2 := 1 - float64(power(a.Beta2, step))
	lr, decay := a.LR*rate, 1.0
	if matrix {
		decay = 1 - float64(lr*a.WeightDecay)
	}
	return kernels.AdamW{
		GradScale:     float32(scale),
		OneMinusBeta1: float32(1 - a.Beta1),
		Beta2:         float32(a.Beta2),
		OneMinusBeta2: float32(1 - a.Beta2),
		InvSqrtBias2:  float32(1 / math.Sqrt(bias2)),
		Eps:           float32(a.Eps),
		Decay:         float32(decay),
		StepSize:      float32(lr / bias1),
	}
}

// power is x to the n-th, by products alone: the same bits on every platform, which math.Pow does not promise.
func power(x float64, n int) float64 {
	y := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			y *= x
		}
		x *= x
	}
	return y
}

// denseParameter takes the slices out of a parameter and says whether it is a matrix.
func denseParameter(p gorgonia.ValueGrad) (w, g []float32, matrix bool, err error) {
	if own, ok := p.(*Parameter); ok { // without the boxing that the interface costs
		return own.weights, own.gradient, own.matrix, nil
	}
	value := p.Value()
	if value == nil {
		return nil, nil, false, errors.New("it has no value")
	}
	grad, err := p.Grad()
	if err != nil {
		return nil, nil, false, fmt.Errorf("it has no gradient: %w", err)
	}
	w, ok := value.Data().([]float32)
	if !ok {
		return nil, nil, false, fmt.Errorf("its value is a %T, not []float32", value.Data())
	}
	g, ok = grad.Data().([]float32)
	if !ok {
		return nil, nil, false, fmt.Errorf("its gradient is a %T, not []float32", grad.Data())
	}
	return w, g, value.Shape().Dims() >= 2, nil
}

func parameterName(p gorgonia.ValueGrad, i int) string {
	if n, ok := p.(gorgonia.Namer); ok {
		return n.Name()
	}
	return fmt.Sprintf("parameter %d", i)
}
