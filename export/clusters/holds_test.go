package clusters

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
)

// randomHead is a head whose rows share some directions.
func randomHead(t *testing.T, v, d int, spec qat.Spec) *qat.Matrix {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, uint64(v)))
	w := make([]float32, v*d)
	for i := range v {
		common := rng.NormFloat64()
		for j := range d {
			w[i*d+j] = float32(rng.NormFloat64()*0.3 + common/float64(1+j%7))
		}
	}
	m, err := qat.Quantise(spec, w, v, d)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestHolds(t *testing.T) {
	for _, spec := range []qat.Spec{{Bits: 4, Group: 32, Scale: configs.ScaleF32}, {Bits: 2, Scale: configs.ScaleF16}, {Bits: 8, Group: 64, Scale: configs.ScaleF32}} {
		for _, size := range [][2]int{{400, 48}, {37, 20}, {300, 2}, {1, 64}} {
			head := randomHead(t, size[0], size[1], spec)
			c, err := Make(head, Options{Count: min(16, size[0]), Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Holds(head); err != nil {
				t.Errorf("%v, %v: %v", spec, size, err)
			}
		}
	}
}

// TestHoldsFindsLies changes what is stored, a little each: all but looser bounds must be found.
func TestHoldsFindsLies(t *testing.T) {
	head := randomHead(t, 400, 48, qat.Spec{Bits: 4, Group: 32, Scale: configs.ScaleF32})
	made := func() *Clusters {
		c, err := Make(head, Options{Count: 16, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, lie := range map[string]func(c *Clusters){
		"norms of the boxes":    func(c *Clusters) { c.NormStep *= 0.98 },
		"norms of level 0":      func(c *Clusters) { c.Levels[0].NormStep *= 0.98 },
		"norms of level 1":      func(c *Clusters) { c.Levels[1].NormStep *= 0.98 },
		"the largest row":       func(c *Clusters) { c.RowNorm *= 0.999 },
		"no largest row":        func(c *Clusters) { c.RowNorm = 0 },
		"one norm byte":         func(c *Clusters) { c.Levels[0].Blocks[57*BlockBytes+15] -= 2 },
		"one norm byte, last":   func(c *Clusters) { c.Levels[1].Blocks[399*BlockBytes+15] -= 2 },
		"one code":              func(c *Clusters) { c.Levels[0].Blocks[100*BlockBytes] ^= 4 },
		"a step":                func(c *Clusters) { c.Levels[0].Steps[3] *= 1.5 },
		"a weight":              func(c *Clusters) { c.Levels[1].Weights[40] = 0 },
		"a smaller weight":      func(c *Clusters) { c.Levels[0].Weights[45] *= 0.1 },
		"a weight of the boxes": func(c *Clusters) { c.Weights[20] = 0 },
		"a box":                 func(c *Clusters) { c.Boxes[3].High[0] = c.Boxes[3].Low[0] },
		"a step of the boxes":   func(c *Clusters) { c.BoxSteps[1] *= 0.9 },
		"two tokens exchanged":  func(c *Clusters) { c.Order[10], c.Order[300] = c.Order[300], c.Order[10] },
		"two neighbours":        func(c *Clusters) { c.Order[10], c.Order[11] = c.Order[11], c.Order[10] },
		"a token twice":         func(c *Clusters) { c.Order[10] = c.Order[300] },
		"a border":              func(c *Clusters) { c.First[4] += 3 },
		"the rotation":          func(c *Clusters) { c.Rotation.Scales[0] *= 2 },
	} {
		c := made()
		lie(c)
		if err := c.Holds(head); err == nil {
			t.Errorf("%s: the lie is not found", name)
		}
	}
	for name, looser := range map[string]func(c *Clusters){
		"norms":           func(c *Clusters) { c.NormStep *= 1.1 },
		"the largest row": func(c *Clusters) { c.RowNorm *= 2 },
		"a box": func(c *Clusters) {
			c.Boxes[3].High[0], c.Boxes[3].Low[0] = 127, -127
		},
	} {
		c := made()
		looser(c)
		if err := c.Holds(head); err != nil {
			t.Errorf("%s looser: %v", name, err)
		}
	}
	other := randomHead(t, 399, 48, qat.Spec{Bits: 4, Group: 32, Scale: configs.ScaleF32})
	if err := made().Holds(other); err == nil {
		t.Error("clusters of another head are accepted")
	}
	c := made()
	c.Order = slices.Clone(c.Order)
	if err := c.Holds(head); err != nil {
		t.Error(err)
	}
}
