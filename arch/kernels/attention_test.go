package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// attentionSpec completes s with rotary tables, and numbers that a model could have.
func attentionSpec(s AttentionSpec) AttentionSpec {
	half := s.HeadDim / 2
	for p := range s.Seq {
		for i := range half {
			sin, cos := math.Sincos(float64(p) / float64(i+1))
			s.Cos, s.Sin = append(s.Cos, float32(cos)), append(s.Sin, float32(sin))
		}
	}
	s.Eps, s.Scale = 1e-3, float32(1/math.Sqrt(float64(s.HeadDim)))
	return s
}

// TestAttentionPaths: forward and gradient have the same bits on every path, also where sums of codes pass what a float
// holds: with more than 1,024 keys.
func TestAttentionPaths(t *testing.T) {
	for _, s := range []AttentionSpec{
		{Batch: 1, Seq: 1, Heads: 1, HeadDim: 2},
		{Batch: 2, Seq: 3, Heads: 1, HeadDim: 6, QKNorm: true},
		{Batch: 1, Seq: 17, Heads: 2, HeadDim: 4},
		{Batch: 2, Seq: 64, Heads: 3, HeadDim: 10, QKNorm: true},
		{Batch: 1, Seq: 65, Heads: 2, HeadDim: 32, QKNorm: true},
		{Batch: 1, Seq: 100, Heads: 1, HeadDim: 36},
		{Batch: 1, Seq: 31, Heads: 1, HeadDim: 1024, QKNorm: true},
		{Batch: 1, Seq: 1100, Heads: 1, HeadDim: 4},
	} {
		for _, s.Mode = range []Mode{Float, Codes} {
			s := attentionSpec(s)
			s.Train = true
			lengths := slices.Repeat([]int{s.Seq}, s.Batch)
			size := s.Batch * s.Seq * s.Heads * s.HeadDim
			qkv, dy := random(1, 3*size), random(2, size)
			clear(qkv[:s.HeadDim]) // vectors of zeros are quantised by a rule of their own
			what := fmt.Sprintf("%d sequences of %d, %d heads of %d, norm %v, mode %d", s.Batch, s.Seq, s.Heads, s.HeadDim, s.QKNorm, s.Mode)
			forward := func() []float32 {
				a, y := NewAttention(s), make([]float32, size)
				a.Forward(lengths, qkv, y)
				return y
			}
			onPaths(t, what, forward)
			onPaths(t, "gradient of "+what, func() []float32 {
				a, dqkv := NewAttention(s), make([]float32, 3*size)
				a.Forward(lengths, qkv, make([]float32, size))
				a.Grad(lengths, qkv, dy, dqkv)
				return dqkv
			})
			if values := s; s.Mode == Codes {
				values.Mode = Values
				a, y := NewAttention(values), make([]float32, size)
				a.Forward(lengths, qkv, y)
				if !slices.Equal(y, forward()) {
					t.Errorf("%s: training computes other bits than exact mode", what)
				}
			}
		}
	}
}

// TestAttentionMean: queries of zeros see all keys up to their own alike, so the result is the mean of the values.
func TestAttentionMean(t *testing.T) {
	s := attentionSpec(AttentionSpec{Batch: 1, Seq: 1500, Heads: 1, HeadDim: 2, Mode: Codes})
	qkv, y := make([]float32, 6*s.Seq), make([]float32, 2*s.Seq)
	for p := range s.Seq {
		qkv[6*p+2], qkv[6*p+4], qkv[6*p+5] = float32(p), 1, -0.5
	}
	NewAttention(s).Forward([]int{s.Seq}, qkv, y)
	for p := range s.Seq {
		if math.Abs(float64(y[2*p]-1)) > 1e-6 || math.Abs(float64(y[2*p+1]+0.5)) > 0.01 {
			t.Fatalf("position %d: %v, %v, where all values are 1, -0.5", p, y[2*p], y[2*p+1])
		}
	}
}

// TestAttentionNotFinite: a NaN or an infinity in queries, keys or values shows in the result, at every size.
func TestAttentionNotFinite(t *testing.T) {
	for _, norm := range []bool{false, true} {
		for _, mode := range []Mode{Float, Codes} {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				s := attentionSpec(AttentionSpec{Batch: 1, Seq: 40, Heads: 2, HeadDim: 6, QKNorm: norm, Mode: mode})
				width := s.Heads * s.HeadDim
				for part := range 3 {
					qkv, y := random(1, 3*width*s.Seq), make([]float32, width*s.Seq)
					qkv[20*3*width+part*width+8] = float32(bad)
					onPaths(t, "a result that is not finite", func() []float32 {
						NewAttention(s).Forward([]int{s.Seq}, qkv, y)
						found := float32(0)
						if !Finite(y[20*width:]) {
							found = 1
						}
						return []float32{found}
					})
					if Finite(y[20*width:]) {
						t.Errorf("norm %v, mode %d: %v in part %d is hidden", norm, mode, bad, part)
					}
				}
			}
		}
	}
}
