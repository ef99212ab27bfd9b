package kernels

// #include "kernels.h"
import "C"

// PLE holds the sizes and constants of the per-layer embeddings: slices of Dim floats for each of Layers layers.
type PLE struct {
	Layers, Dim              int
	InScale, TableScale, Mix float32 // c_e, c_t, c_h of docs/numerics.md
	Eps                      float32
}

// Forward computes e = (rmsnorm(x*c_e, gain) + t*c_t) * c_h on rows of Layers*Dim. inv gets the inverse norms of each
// row and layer. t and e may be the same slice.
func (p PLE) Forward(x, gain, t []float32, rows int, inv, e []float32) {
	size := rows * p.Layers * p.Dim
	need("x", len(x), size)
	need("t", len(t), size)
	need("e", len(e), size)
	need("gain", len(gain), p.Dim)
	need("inv", len(inv), rows*p.Layers)
	C.k_ple_mix(ptr(x), ptr(gain), ptr(t), n(rows), n(p.Layers), n(p.Dim), C.float(p.InScale), C.float(p.TableScale),
		C.float(p.Mix), C.float(p.Eps), ptr(inv), ptr(e))
}

// Grad is the gradient with respect to x and gain. That of a table row is de * c_t * c_h.
func (p PLE) Grad(x, gain, inv, de []float32, rows int, dx, dgain []float32) {
	size := rows * p.Layers * p.Dim
	need("x", len(x), size)
	need("de", len(de), size)
	need("dx", len(dx), size)
	need("gain", len(gain), p.Dim)
	need("dgain", len(dgain), p.Dim)
	need("inv", len(inv), rows*p.Layers)
	C.k_ple_mix_grad(ptr(x), ptr(gain), ptr(inv), ptr(de), n(rows), n(p.Layers), n(p.Dim), C.float(p.InScale),
		C.float(p.Mix), ptr(dx), ptr(dgain))
}
