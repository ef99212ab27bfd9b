package kernels

import (
	"fmt"
	"math"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
	"github.com/chiplm/chiplm/qat/fakequant"
)

// TestProductIntegers compares the product with its definition in docs/numerics.md, on every path.
func TestProductIntegers(t *testing.T) {
	for _, bits := range []int{2, 4, 8} {
		for _, group := range []int{0, 32, 64} {
			for _, size := range [][4]int{{1, 1, 1, 1}, {2, 3, 5, 2}, {7, 64, 16, 1}, {13, 128, 100, 1}, {5, 131, 33, 3}, {9, 320, 64, 1}} {
				rows, in, out, parts := size[0], size[1], size[2], size[3]
				spec := qat.Spec{Bits: bits, Group: group, Scale: configs.ScaleF32}
				x, w := random(1, rows*in), random(2, parts*out*in)
				x[0] = 40 // an outlier, so that codes differ in size
				if rows > 1 {
					clear(x[in : 2*in])
				}
				clear(w[:in]) // zero groups
				for part := range parts {
					want := defined(t, spec, x, rows, in, w[part*out*in:], out)
					onPaths(t, fmt.Sprintf("%d bits, group %d, %v, part %d", bits, group, size, part), func() []float32 {
						packed := fakequant.NewPacked(spec, parts, out, in)
						fakequant.Weights(spec, w, parts*out, in, make([]float32, len(w)), packed)
						codes, scales := make([]uint8, rows*4*fakequant.Quads(in)), make([]float32, rows)
						fakequant.Activations(x, rows, in, nil, codes, scales)
						y := make([]float32, rows*out)
						ProductIntegers(codes, scales, rows, packed, part, M(y, out))
						for i := range want {
							if math.Float32bits(y[i]) != math.Float32bits(want[i]) {
								t.Fatalf("%d bits, group %d, %v: element %d is %v, defined as %v", bits, group, size, i, y[i], want[i])
							}
						}
						return y
					})
				}
			}
		}
	}
}

// defined is the product of quantised x and w as docs/numerics.md defines it.
func defined(t *testing.T, spec qat.Spec, x []float32, rows, in int, w []float32, out int) []float32 {
	t.Helper()
	m, err := qat.Quantise(spec, w[:out*in], out, in)
	if err != nil {
		t.Fatal(err)
	}
	groups, width := qat.Groups(spec, in), groupWidth(spec, in)
	y, code := make([]float32, rows*out), make([]int8, in)
	for r := range rows {
		sx := qat.QuantiseVector(x[r*in:(r+1)*in], code)
		for o := range out {
			var acc float32
			for g := range groups {
				sum := int32(0)
				for c := g * width; c < min((g+1)*width, in); c++ {
					sum += int32(code[c]) * int32(m.Codes[o*in+c])
				}
				term := float32(float32(sum) * m.Scales[o*groups+g])
				if g == 0 {
					acc = term
				} else {
					acc += term
				}
			}
			y[r*out+o] = acc * sx
		}
	}
	return y
}
