package kernels

// #include "kernels.h"
import "C"

// Route chooses one of cols experts for each row of scores z (the lowest on a tie): prob gets the softmax, p the
// probability of the choice.
func Route(z []float32, cols int, choice []int32, p, prob []float32) {
	rows := len(choice)
	need("z", len(z), rows*cols)
	need("p", len(p), rows)
	need("prob", len(prob), rows*cols)
	C.k_route(ptr(z), n(rows), n(cols), iptr(choice), ptr(p), ptr(prob))
}

// RouteGrad is the gradient of the scores from dp, the gradient of p, and bias [cols], one of every row of prob.
func RouteGrad(prob []float32, choice []int32, dp, bias, dz []float32) {
	rows, cols := len(choice), len(bias)
	need("prob", len(prob), rows*cols)
	need("dp", len(dp), rows)
	need("dz", len(dz), rows*cols)
	for _, c := range choice {
		if c < 0 || int(c) >= cols {
			panic("kernels: a choice is outside the experts")
		}
	}
	C.k_route_grad(ptr(prob), iptr(choice), ptr(dp), ptr(bias), n(rows), n(cols), ptr(dz))
}

// DotScaleRows sets dot[r] to the product of rows r of a and b, then multiplies row r of a by s[r]. With b nil there
// is no product.
func DotScaleRows(a, b, s []float32, cols int, dot []float32) {
	rows := len(s)
	need("a", len(a), rows*cols)
	if b != nil {
		need("b", len(b), rows*cols)
		need("dot", len(dot), rows)
	} else {
		dot = nil
	}
	C.k_dot_scale_rows(ptr(a), ptr(b), ptr(s), n(rows), n(cols), ptr(dot))
}
