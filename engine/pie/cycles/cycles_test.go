package cycles

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chiplm/chiplm/engine/pie"
)

const add = `
	.global add
	.align 4
add: // (const uint32_t *x, uint32_t *y, n): y += x
	entry a1, 32
	loopnez a4, 1f
	l32i a5, a2, 0
	l32i a6, a3, 0
	addi a2, a2, 4
	add a5, a5, a6
	s32i a5, a3, 0
	addi a3, a3, 4
1:	retw
`

func kernel(shared bool) pie.Kernel {
	return pie.Kernel{Symbol: "add", File: "add.S", Make: func(s pie.Shape, _ pie.Values, r *rand.Rand) []pie.Argument {
		x, y := make([]byte, 4*s.N), make([]byte, 4*s.N)
		for i := range x {
			x[i], y[i] = byte(r.IntN(100)), byte(r.IntN(100))
		}
		if shared {
			y = x
		}
		return []pie.Argument{{Name: "x", Buffer: x, Access: pie.Read}, {Name: "y", Buffer: y, Access: pie.Read | pie.Write}, {Name: "n", Word: uint32(s.N)}}
	}}
}

func TestRunner(t *testing.T) {
	folder := fstest.MapFS{"add.S": {Data: []byte(add)}}
	for _, shared := range []bool{false, true} {
		r, err := New(kernel(shared), folder)
		if err != nil {
			t.Fatal(err)
		}
		before, after := Make(r.Kernel, pie.Shape{N: 5}, pie.Random, 3), Make(r.Kernel, pie.Shape{N: 5}, pie.Random, 3)
		res, err := r.Run(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range after[1].Buffer {
			if b != before[0].Buffer[i]+before[1].Buffer[i] {
				t.Errorf("shared %v: byte %d is %d", shared, i, b)
			}
		}
		if again, err := r.Run(t.Context(), Make(r.Kernel, pie.Shape{N: 5}, pie.Random, 3)); err != nil || again != res || res.Cycles == 0 {
			t.Errorf("the second run: %+v, not %+v; %v", again, res, err)
		}
	}
	if _, err := New(pie.Kernel{Symbol: "none", File: "none.S"}, folder); err == nil {
		t.Error("a file that is not there")
	}
}

func TestOf(t *testing.T) {
	var memo Memo
	for _, f := range []func(string, pie.Shape) (float64, error){Of, memo.Of} {
		if _, err := f("nothing", pie.Shape{}); err == nil || !strings.Contains(err.Error(), `no kernel "nothing"`) {
			t.Errorf("%v", err)
		}
	}
	for _, k := range pie.Kernels() {
		for i, s := range k.Shapes {
			if i == 2 {
				break
			}
			n, err := Of(k.Symbol, s)
			if err != nil || n <= 0 {
				t.Errorf("%s %+v: %v, %v", k.Symbol, s, n, err)
			}
			for range 2 {
				if m, err := memo.Of(k.Symbol, s); err != nil || m != n {
					t.Errorf("%s %+v: %v, not %v; %v", k.Symbol, s, m, n, err)
				}
			}
		}
	}
}
