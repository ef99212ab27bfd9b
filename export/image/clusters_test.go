package image

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

// addHead gives a model the tensors of a clustered head, with bounds that are well formed and say nothing.
func addHead(m *Model, n int) {
	v, d := m.Sizes.VocabSize, m.Sizes.DModel
	m.Sizes.Clusters = n
	for _, t := range HeadTensors(v, d, n) {
		x := Tensor{Name: t.Name, Rows: t.Rows(), Cols: t.Cols(), Bits: 8, ScaleType: ScaleTypeOf(t.Quant)}
		x.Codes = make([]byte, x.codesBytes())
		x.Scales = make([]byte, x.scaleBytes())
		switch t.Name {
		case HeadBounds:
			first := x.Codes[BoundsBytes(d, n)-4*(n+1):]
			for c := range n + 1 {
				le.PutUint32(first[4*c:], uint32(c*v/n))
			}
		case HeadOrder:
			for i := range v {
				le.PutUint32(x.Codes[4*i:], uint32(v-1-i))
			}
		}
		m.Tensors = append(m.Tensors, x)
	}
}

func TestClusterDataIsChecked(t *testing.T) {
	m, _ := testModel(tiny(), 9)
	addHead(m, 3)
	good, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	f, results, err := Check(bytes.NewReader(good), int64(len(good)))
	if err != nil || f == nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Name == "clusters" && r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	d := m.Sizes.DModel
	bounds, order := f.Tensor(HeadBounds).CodesOffset, f.Tensor(HeadOrder).CodesOffset
	firsts := bounds + int64(BoundsBytes(d, 3)) - 16
	for name, at := range map[string]struct {
		offset int64
		value  uint32
	}{
		"scale of the rotation": {f.Tensor(HeadRotation).ScalesOffset, math.Float32bits(0x1p30)},
		"negative norm":         {bounds, math.Float32bits(-1)},
		"reserved word":         {bounds + 20, 1},
		"infinite weight":       {bounds + 32, 0x7f800000},
		"NaN step":              {bounds + 32 + 4*int64(d), 0x7fc00000},
		"reserved of a level":   {bounds + 32 + 4*int64(d) + 4, 7},
		"direction":             {bounds + 32 + 4*int64(d) + 8, uint32(d)},
		"start of the first":    {firsts, 1},
		"descending start":      {firsts + 8, 0xffff},
		"end":                   {firsts + 12, 0},
		"id outside":            {order, uint32(m.Sizes.VocabSize)},
		"id twice":              {order, 0},
	} {
		b := bytes.Clone(good)
		le.PutUint32(b[at.offset:], at.value)
		reseal(b)
		_, results, err := Check(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		refused := false
		for _, r := range results {
			refused = refused || r.Name == "clusters" && errors.Is(r.Err, ErrClusters)
		}
		if !refused {
			t.Errorf("%s: accepted", name)
		}
	}
}
