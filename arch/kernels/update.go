package kernels

// #include "kernels.h"
import "C"

// AddRows adds the rows ids of x, which are distinct, to those of table; both have cols columns.
func AddRows(x []float32, ids []int32, cols int, table []float32) {
	checkIDs(ids, cols, min(len(x), len(table)))
	C.k_add_rows(ptr(x), iptr(ids), n(len(ids)), n(cols), ptr(table))
}

// SumSquares adds up the squares of x in double, in a fixed order.
func SumSquares(x []float32) float64 { return float64(C.k_sum_squares(ptr(x), n(len(x)))) }

// AdamW holds the numbers of one step that are the same for every element.
type AdamW struct {
	GradScale                          float32 // the gradient is multiplied by it first
	OneMinusBeta1                      float32
	Beta2, OneMinusBeta2               float32
	InvSqrtBias2, Eps, Decay, StepSize float32 // of the new weight w*Decay - StepSize*(m / (sqrt(v)*InvSqrtBias2 + Eps))
}

// Update moves the weights w and their moments m and v by the gradient g, in one pass. It says whether every new weight
// is finite.
func (a AdamW) Update(w, m, v, g []float32) bool {
	need("m", len(m), len(w))
	need("v", len(v), len(w))
	need("g", len(g), len(w))
	k := C.struct_k_adamw{
		grad_scale: C.float(a.GradScale), one_minus_beta1: C.float(a.OneMinusBeta1), beta2: C.float(a.Beta2),
		one_minus_beta2: C.float(a.OneMinusBeta2), inv_sqrt_bias2: C.float(a.InvSqrtBias2), eps: C.float(a.Eps),
		decay: C.float(a.Decay), step_size: C.float(a.StepSize),
	}
	return C.k_adamw(ptr(w), ptr(m), ptr(v), ptr(g), n(len(w)), k) != 0
}

// Momentum moves the running mean m of gradients g*scale by rise = 1 - beta, and sets u to the mean of gradient and m in
// which m weighs ahead: with ahead = beta Nesterov's look ahead, with 1 the mean itself.
func Momentum(g []float32, scale, rise, ahead float32, m, u []float32) {
	need("m", len(m), len(g))
	need("u", len(u), len(g))
	C.k_momentum(ptr(g), n(len(g)), C.float(scale), C.float(rise), C.float(ahead), ptr(m), ptr(u))
}

// Blend computes y = a*x + b*y and says whether every element of y is finite then.
func Blend(a float32, x []float32, b float32, y []float32) bool {
	need("y", len(y), len(x))
	return C.k_blend(C.float(a), ptr(x), C.float(b), ptr(y), n(len(x))) != 0
}
