package image

import (
	"fmt"
	"math"
)

// checkClusterData wants the tensors of a clustered head to hold what a search can work with, as the C engine does:
// directions below d_model, positions that ascend to the vocabulary, every id once, and values whose products neither
// overflow nor become subnormal. Whether the bounds hold is another question.
func checkClusterData(f *File) error {
	v, d, n := f.Sizes.VocabSize, f.Sizes.DModel, f.Sizes.Clusters
	if n == 0 {
		return nil
	}
	rotation := f.Tensor(HeadRotation)
	for r := range rotation.Rows {
		for g := range rotation.Groups() {
			if s := rotation.Scale(r, g); s != 0 && !(s >= 0x1p-20 && s <= 0x1p20) {
				return fmt.Errorf("%w: %s, row %d: scale %v is outside 2^-20 to 2^20", ErrClusters, HeadRotation, r, s)
			}
		}
	}
	b := f.Tensor(HeadBounds).Codes
	word := func() uint32 {
		w := le.Uint32(b)
		b = b[4:]
		return w
	}
	steps := func(what string, count int, least, most float32) error {
		for i := range count {
			w := word()
			if x := math.Float32frombits(w); w != 0 && !(x >= least && x <= most) {
				return fmt.Errorf("%w: %s: %s %d is %v, outside 0 and %g to %g", ErrClusters, HeadBounds, what, i, x, least, most)
			}
		}
		return nil
	}
	zeros := func(count int) error {
		for range count {
			if w := word(); w != 0 {
				return fmt.Errorf("%w: %s: a reserved word is %#x", ErrClusters, HeadBounds, w)
			}
		}
		return nil
	}
	levels := func() error {
		for range blockLevels {
			if err := steps("step of a level's norms", 1, 0x1p-70, 0x1p60); err != nil {
				return err
			}
			if err := zeros(1); err != nil {
				return err
			}
			for i := range BlockLanes {
				if w := word(); int64(w) >= int64(d) {
					return fmt.Errorf("%w: %s: lane %d has direction %d of %d", ErrClusters, HeadBounds, i, w, d)
				}
			}
			if err := steps("step of lane", BlockLanes, 0x1p-70, 0x1p60); err != nil {
				return err
			}
			if err := steps("weight", d, 0x1p-42, 0x1p42); err != nil {
				return err
			}
		}
		return nil
	}
	for _, check := range []func() error{
		func() error { return steps("norm or step", 5, 0x1p-70, 0x1p60) },
		func() error { return zeros(3) },
		func() error { return steps("weight", d, 0x1p-42, 0x1p42) },
		levels,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	b = b[boxBytes*n:]
	before := uint32(0)
	for c := range n + 1 {
		first := word()
		if first < before || int64(first) > int64(v) || c == 0 && first != 0 || c == n && first != uint32(v) {
			return fmt.Errorf("%w: %s: cluster %d starts at %d of %d, the one before at %d", ErrClusters, HeadBounds, c, first, v, before)
		}
		before = first
	}
	seen := make([]bool, v)
	b = f.Tensor(HeadOrder).Codes
	for at := range v {
		id := word()
		if int64(id) >= int64(v) || seen[id] {
			return fmt.Errorf("%w: %s: place %d holds id %d, which is outside 0 to %d or there twice", ErrClusters, HeadOrder, at, id, v-1)
		}
		seen[id] = true
	}
	return nil
}
