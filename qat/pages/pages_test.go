package pages

import "testing"

// TestMake: slices of any size are whole, zero and their own.
func TestMake(t *testing.T) {
	var all [][]float32
	for _, n := range []int{0, 1, large/4 - 1, large / 4, 1 << 20, 3<<20 + 7} {
		for range 3 {
			x := Make[float32](n)
			if len(x) != n {
				t.Fatalf("%d elements, want %d", len(x), n)
			}
			for i, v := range x {
				if v != 0 {
					t.Fatalf("element %d of %d is %v", i, n, v)
				}
			}
			all = append(all, x)
		}
	}
	for k, x := range all {
		for i := range x {
			x[i] = float32(k)
		}
	}
	for k, x := range all {
		for i, v := range x {
			if v != float32(k) {
				t.Fatalf("element %d of slice %d is %v", i, k, v)
			}
		}
	}
	if n := len(Make[int8](5)) + len(Make[uint8](large)) + len(Make[int32](large)); n != 5+2*large {
		t.Errorf("%d elements of other types", n)
	}
}
