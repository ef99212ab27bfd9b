package engine

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// TestTheTokenBefore: the row of the bigram table for the first id of a call follows from the last id that was fed, also
// after a call that failed half way, and from no id after a reset.
func TestTheTokenBefore(t *testing.T) {
	cfg := shape(40, 32, 1, 2, 24, 12, 0, 0)
	cfg.TieEmbeddings, cfg.NgramRows = false, 300
	m := newTestModel(t, cfg, 3)
	im := m.image(t, []int32{1})
	const broken = 39 // the one token with a row that is not finite
	le.PutUint32(im.bytes[im.scales[configs.TokenEmbedding]+4*broken:], math.Float32bits(3e38))
	fixCRCs(im.bytes)
	image := openTest(t, im.bytes)
	for _, batch := range []int{1, 2, 5} {
		e := newEngine(t, image, batch)
		check := func(fed []int32) {
			t.Helper()
			got := make([]float32, cfg.VocabSize)
			if err := e.ForwardLast(fed[len(fed)-1:], got); err != nil {
				t.Fatal(err)
			}
			want := m.forward(fed)
			sameBits(t, fmt.Sprintf("batch %d, %v", batch, fed), got, want[len(want)-cfg.VocabSize:])
		}
		check([]int32{5})
		if err := e.Forward([]int32{6, 7, 8, 9, 10, broken}, nil); !errors.Is(err, ErrNotFinite) || e.Position() != 1 {
			t.Fatalf("%v, position %d", err, e.Position())
		}
		check([]int32{5, 7})
		if err := e.Forward([]int32{6, 40}, nil); !errors.Is(err, ErrID) {
			t.Fatal(err)
		}
		check([]int32{5, 7, 8})
		if err := e.Forward(nil, nil); err != nil {
			t.Fatal(err)
		}
		check([]int32{5, 7, 8, 1})
		e.Reset()
		check([]int32{8})
	}
	same := m.forward([]int32{8})
	other := m.forward([]int32{5, 8})
	if same[0] == other[cfg.VocabSize] {
		t.Error("the token before changes nothing")
	}
}
