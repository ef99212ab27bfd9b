//go:build linux || darwin

package engine

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// guardedFloats draws n floats of the given size, before a page that must not be touched.
func guardedFloats(tb testing.TB, rng *rand.Rand, n int, size float64) []byte {
	tb.Helper()
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64() * size)
	}
	return guardedCopy(tb, floatBytes(v...))
}

func guardedCodes(tb testing.TB, rng *rand.Rand, n int) []byte {
	tb.Helper()
	codes := make([]byte, n)
	extreme := rng.IntN(4) == 0
	for i, c := range codesOf(rng, 8, n, extreme) {
		codes[i] = byte(c)
	}
	return guardedCopy(tb, codes)
}

// onEveryPath runs f on every path and wants what it returns to be the same as in plain C.
func onEveryPath(t *testing.T, what string, f func(k kernels) []byte) {
	t.Helper()
	var want []byte
	for _, path := range Paths() {
		got := f(kernels(path))
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			for i := 0; i+4 <= len(got); i += 4 {
				if a, b := le.Uint32(got[i:]), le.Uint32(want[i:]); a != b {
					t.Fatalf("%s, %v: word %d is %#x (%v), plain has %#x (%v)", what, path, i/4, a, math.Float32frombits(a), b,
						math.Float32frombits(b))
				}
			}
			t.Fatalf("%s, %v: %v, plain has %v", what, path, got, want)
		}
	}
}

// TestStepsAreTheSameOnEveryPath compares the steps between products on every path, bit for bit, at every length, and wants
// nothing touched beyond it.
func TestStepsAreTheSameOnEveryPath(t *testing.T) {
	flag := func(b bool) byte { return map[bool]byte{true: 1}[b] }
	for n := 1; n <= 150; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(n), 9))
			size := math.Exp2(float64(rng.IntN(20) - 12))
			x, e := guardedFloats(t, rng, n, size), guardedFloats(t, rng, n, 1)
			padded := (n + 63) / 64 * 64
			for _, bad := range []float64{0, 1, math.Inf(1), math.NaN()} { // a vector of zeros, and what is not finite
				v := bytes.Clone(x)
				if bad != 1 {
					at := 4 * rng.IntN(n)
					le.PutUint32(v[at:], math.Float32bits(float32(bad)))
				}
				if bad == 0 {
					clear(v)
				}
				v = guardedCopy(t, v)
				onEveryPath(t, "quantise", func(k kernels) []byte {
					codes, sums := guarded(t, padded, 64), guarded(t, padded/8, 4)
					scale := k.quantise(v, codes, sums)
					return append(append(floatBytes(scale), codes...), sums...)
				})
				onEveryPath(t, "all_finite", func(k kernels) []byte { return []byte{flag(k.allFinite(v))} })
				if k := kernels(PathPlain); k.allFinite(v) != (bad < 2) {
					t.Fatalf("with %v among them, values count as finite: %v", bad, k.allFinite(v))
				}
				onEveryPath(t, "soft_sum", func(k kernels) []byte {
					out := make([]byte, 8)
					if !k.softSum(v, out) {
						clear(out) // undefined then
					}
					return out
				})
			}
			onEveryPath(t, "rmsnorm", func(k kernels) []byte {
				y := guarded(t, 4*n, 4)
				k.rmsnorm(x, e, y)
				without := guardedCopy(t, x)
				k.rmsnorm(without, nil, without) // in place
				return append(y, without...)
			})
			for _, swiglu := range []bool{false, true} {
				onEveryPath(t, "gate", func(k kernels) []byte {
					g := guardedCopy(t, x)
					k.gate(g, e, swiglu)
					return g
				})
			}
			onEveryPath(t, "add and blend", func(k kernels) []byte {
				sum, blend := guardedCopy(t, x), guardedCopy(t, x)
				k.add(sum, e)
				k.blend(blend, e)
				return append(bytes.Clone(sum), blend...)
			})
			onEveryPath(t, "gelu_mix", func(k kernels) []byte {
				y := guardedCopy(t, x)
				k.geluMix(y, e)
				return y
			})
			cosine, sine, pairs := guardedFloats(t, rng, n, 1), guardedFloats(t, rng, n, 1), guardedFloats(t, rng, 2*n, size)
			onEveryPath(t, "rotate", func(k kernels) []byte {
				y := guardedCopy(t, pairs)
				k.rotate(y, cosine, sine)
				return y
			})
			matrix := guardedFloats(t, rng, 3*((n+3)/4*4), 1)
			onEveryPath(t, "product_floats", func(k kernels) []byte {
				y := guarded(t, 4*3, 4)
				k.productFloats(matrix, x, y)
				return y
			})
			codes := guardedCodes(t, rng, n)
			codes[rng.IntN(n)] = 0
			onEveryPath(t, "marks", func(k kernels) []byte {
				marks := guarded(t, n, 1)
				counts := words(uint32(k.markOpen(e, marks)), uint32(k.markUsed(codes, marks)))
				return append(counts, marks...)
			})
			c, _ := randomProduct(t, rng, false)
			onEveryPath(t, "dequantise", func(k kernels) []byte {
				y := guarded(t, 4*c.columns, 4)
				k.dequantise(c, c.rows-1, y)
				return y
			})
		})
	}
}

// TestAttentionIsTheSameOnEveryPath compares attention on every path over heads of all kinds of widths, for few and for
// many positions and queries.
func TestAttentionIsTheSameOnEveryPath(t *testing.T) {
	for _, d := range []int{2, 4, 6, 8, 10, 16, 18, 24, 32, 40, 48, 62, 64, 80, 96, 128, 130, 256} {
		for n := 1; n < 140; n += 1 + n/40 {
			t.Run(fmt.Sprintf("%d elements, %d positions", d, n), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(d), uint64(n)))
				queries := 1 + rng.IntN(min(n, 6))
				a := &attentionCall{width: d, stride: d + rng.IntN(9), scale: float32(math.Exp2(-float64(rng.IntN(14)))),
					keys: guardedCodes(t, rng, n*d), values: guardedCodes(t, rng, n*d), keyScales: guarded(t, 4*n, 4),
					valueScales: guarded(t, 4*n, 4), queryScales: guarded(t, 4*queries, 4)}
				a.queries = guardedCodes(t, rng, (queries-1)*a.stride+d)
				for i := range n {
					copy(a.keyScales[4*i:], floatBytes(rng.Float32()))
					copy(a.valueScales[4*i:], floatBytes(rng.Float32()*float32(rng.IntN(5)))) // zero, too
				}
				for i := range queries {
					scale := rng.Float32()
					if rng.IntN(8) == 0 { // scores that overflow, and 0 times infinity
						scale = math.MaxFloat32
					}
					copy(a.queryScales[4*i:], floatBytes(scale))
				}
				columns, ldo := (max(n, d)+attentionTurn-1)/attentionTurn*attentionTurn, d+rng.IntN(4)
				onEveryPath(t, "attend", func(k kernels) []byte {
					most := k.most()
					weights := guarded(t, 4*columns, 64)
					shares, sums := guarded(t, 2*columns*most, 64), guarded(t, 4*columns*most, 64)
					for i := range shares {
						shares[i] = 0xa5
					}
					o := guarded(t, 4*((queries-1)*ldo+d), 4)
					for from := 0; from < queries; from += most {
						if !k.attend(a, from, min(from+most, queries), weights, shares, sums, o[4*from*ldo:], ldo) {
							t.Error("not finite")
						}
					}
					return o
				})
			})
		}
	}
}

// BenchmarkAttention attends to 128 positions, for one query and for as many as a path takes at once.
func BenchmarkAttention(b *testing.B) {
	const n = 128
	for _, path := range Paths() {
		k := kernels(path)
		for _, d := range []int{8, 32, 64} {
			for _, queries := range slices.Compact([]int{1, k.most()}) {
				b.Run(fmt.Sprintf("%v/%d elements, %d queries", path, d, queries), func(b *testing.B) {
					rng := rand.New(rand.NewPCG(1, 2))
					a := &attentionCall{width: d, stride: d, scale: 0.01, queries: guardedCodes(b, rng, queries*d),
						queryScales: bytes.Repeat(floatBytes(0.01), queries), keys: guardedCodes(b, rng, n*d),
						keyScales: bytes.Repeat(floatBytes(0.01), n), values: guardedCodes(b, rng, n*d),
						valueScales: bytes.Repeat(floatBytes(0.01), n)}
					weights, shares, sums := guarded(b, 4*n, 64), guarded(b, 2*n*queries, 64), guarded(b, 4*n*queries, 64)
					o := make([]byte, 4*d*queries)
					for b.Loop() {
						k.attend(a, 0, queries, weights, shares, sums, o, d)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*queries), "ns/query")
				})
			}
		}
	}
}
