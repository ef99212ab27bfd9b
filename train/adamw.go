package train

/*
#cgo CFLAGS: -std=c11 -O3 -Wall -Wextra -Werror
#include "adamw.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"gorgonia.org/gorgonia"

	"github.com/chiplm/chiplm/arch/profile"
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
	GradScale   float64 // every gradient is multiplied by it first: averaging and clipping; 0 is taken as 1
	Threads     int     // goroutines a step may use; 0 is taken as 1

	steps    int // steps taken
	m, v     [][]float32
	profiles []*profile.Profile // nil, or one a thread
}

var _ gorgonia.Solver = (*AdamW)(nil)

// adamwRange is the number of elements that a goroutine updates at a time.
const adamwRange = 1 << 16

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
// that names the parameter; the weights are changed by then.
func (a *AdamW) Step(params []gorgonia.ValueGrad) error {
	if a.m == nil {
		a.m, a.v = make([][]float32, len(params)), make([][]float32, len(params))
		for i, p := range params {
			w, _, _, err := denseParameter(p)
			if err != nil {
				a.m, a.v = nil, nil
				return fmt.Errorf("adamw: %s: %w", parameterName(p, i), err)
			}
			a.m[i], a.v[i] = make([]float32, len(w)), make([]float32, len(w))
		}
	}
	if len(params) != len(a.m) {
		return fmt.Errorf("adamw: %d parameters, but moments for %d", len(params), len(a.m))
	}
	for i, p := range params {
		w, g, _, err := denseParameter(p)
		if err == nil && (len(w) != len(g) || len(w) != len(a.m[i])) {
			err = fmt.Errorf("%d weights, %d gradients, %d moments", len(w), len(g), len(a.m[i]))
		}
		if err != nil {
			return fmt.Errorf("adamw: %s: %w", parameterName(p, i), err)
		}
	}
	a.steps++
	k := a.coefficients()
	for i, p := range params {
		w, g, matrix, _ := denseParameter(p)
		if !a.update(i, w, g, matrix, k) {
			return fmt.Errorf("adamw: %s: %w", parameterName(p, i), errWeightNotFinite)
		}
	}
	return nil
}

// adamwCoefficients are the numbers of one step, the same for every element.
type adamwCoefficients struct {
	gradScale, oneMinusBeta1, beta2, oneMinusBeta2, invSqrtBias2, eps, decay, stepSize float32
}

func (a *AdamW) coefficients() adamwCoefficients {
	scale := a.GradScale
	if scale == 0 {
		scale = 1
	}
	bias1 := 1 - math.Pow(a.Beta1, float64(a.steps))
	bias2 := 1 - math.Pow(a.Beta2, float64(a.steps))
	return adamwCoefficients{
		gradScale:     float32(scale),
		oneMinusBeta1: float32(1 - a.Beta1),
		beta2:         float32(a.Beta2),
		oneMinusBeta2: float32(1 - a.Beta2),
		invSqrtBias2:  float32(1 / math.Sqrt(bias2)),
		eps:           float32(a.Eps),
		decay:         float32(1 - a.LR*a.WeightDecay),
		stepSize:      float32(a.LR / bias1),
	}
}

// update runs the fused pass over parameter i and says whether every weight is finite.
func (a *AdamW) update(i int, w, g []float32, matrix bool, k adamwCoefficients) bool {
	if !matrix {
		k.decay = 1
	}
	m, v := a.m[i], a.v[i]
	threads := min(a.Threads, (len(w)+adamwRange-1)/adamwRange)
	if threads <= 1 {
		ok := adamwPass(w, m, v, g, k)
		a.lap(0, adamwCost(len(w)))
		return ok
	}
	return a.passThreads(threads, w, m, v, g, k)
}

// adamwCost is that of n elements: weight and moments read and written, gradient read.
func adamwCost(n int) profile.Cost { return profile.Memory(profile.Optimiser, 7*n) }

// lap charges the time of a thread to its profile, if there is one.
func (a *AdamW) lap(thread int, c profile.Cost) {
	if thread < len(a.profiles) {
		a.profiles[thread].Lap(c)
	}
}

// passThreads has goroutines take ranges of the tensor until none is left.
func (a *AdamW) passThreads(threads int, w, m, v, g []float32, k adamwCoefficients) bool {
	var next atomic.Int64
	var bad atomic.Bool
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() {
			a.lap(i, profile.Cost{Kind: profile.Waiting})
			done := 0
			defer func() { a.lap(i, adamwCost(done)) }()
			for {
				lo := int(next.Add(1)-1) * adamwRange
				if lo >= len(w) {
					return
				}
				hi := min(lo+adamwRange, len(w))
				done += hi - lo
				if !adamwPass(w[lo:hi], m[lo:hi], v[lo:hi], g[lo:hi], k) {
					bad.Store(true)
				}
			}
		})
	}
	wg.Wait()
	a.lap(0, profile.Cost{Kind: profile.Waiting}) // for the others
	return !bad.Load()
}

func adamwPass(w, m, v, g []float32, k adamwCoefficients) bool {
	if len(w) == 0 {
		return true
	}
	return C.chiplm_adamw(floats(w), floats(m), floats(v), floats(g), C.int64_t(len(w)),
		C.float(k.gradScale), C.float(k.oneMinusBeta1), C.float(k.beta2), C.float(k.oneMinusBeta2),
		C.float(k.invSqrtBias2), C.float(k.eps), C.float(k.decay), C.float(k.stepSize)) == 0
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

// sumSquares adds up the squares of g in a fixed order.
func sumSquares(g []float32) float64 {
	if len(g) == 0 {
		return 0
	}
	return float64(C.chiplm_sum_squares(floats(g), C.int64_t(len(g))))
}

// addTo adds src to dst, which are equally long.
func addTo(dst, src []float32) {
	if len(dst) > 0 {
		C.chiplm_add(floats(dst), floats(src), C.int64_t(len(dst)))
	}
}

func floats(x []float32) *C.float { return (*C.float)(unsafe.Pointer(&x[0])) }
