package windows

import (
	"math/rand/v2"
	"testing"
)

// Every window is in one group, no group holds more than its size, and there are few groups.
func TestPack(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	for _, size := range []int{64, 256} {
		lengths, total := make([]int, 500), 0
		for i := range lengths {
			lengths[i] = min(1+rng.IntN(100), 64)
			total += lengths[i]
		}
		groups := Pack(lengths, size)
		if most := total*21/20/size + 1; len(groups) > most {
			t.Errorf("%d tokens are in %d groups of %d, at most %d are needed", total, len(groups), size, most)
		}
		seen := make([]bool, len(lengths))
		for _, g := range groups {
			tokens := 0
			for _, i := range g {
				if seen[i] {
					t.Errorf("window %d is there twice", i)
				}
				seen[i] = true
				tokens += lengths[i]
			}
			if tokens > size || tokens == 0 {
				t.Errorf("a group of %d tokens, %d are allowed", tokens, size)
			}
		}
		for i, s := range seen {
			if !s {
				t.Errorf("window %d is in no group", i)
			}
		}
	}
	if g := Pack(nil, 8); len(g) != 0 {
		t.Errorf("no windows are in %d groups", len(g))
	}
}
