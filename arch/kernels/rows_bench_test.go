package kernels

import (
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat/simd"
)

// BenchmarkRows times the loops over rows on every path, at the sizes of the reference model. The buffers change from
// call to call, as in a training step, where an operation rarely finds its operands in the nearest cache.
func BenchmarkRows(b *testing.B) {
	const rows, d, f, p, layers, vocab, copies = 1024, 128, 320, 64, 6, 4096, 8
	type set struct{ x, y, z, dx, gu, dgu, a, e, de, g, dg, inv []float32 }
	var sets [copies]set
	for i := range sets {
		r := func(n int) []float32 { return random(uint64(i+1), n) }
		sets[i] = set{r(rows * d), r(rows * d), r(rows * d), r(rows * d), r(rows * 2 * f), r(rows * 2 * f), r(rows * f),
			r(rows * layers * p), r(rows * layers * p), r(rows * p), r(rows * p), random(9, rows*layers)}
		for j := range sets[i].inv {
			sets[i].inv[j] = 1
		}
	}
	gain, dgain := random(1, d), make([]float32, d)
	table, wide := random(2, vocab*d), random(3, vocab*layers*p)
	ids := make([]int32, rows)
	for i := range ids {
		ids[i] = int32(i * 2654435761 % vocab)
	}
	spec := configs.WeightQuant{Bits: 4, Group: 64}
	mix := PLE{Layers: layers, Dim: p, InScale: 0.1, TableScale: 1, Mix: 0.7, Eps: 1e-6}
	for _, c := range []struct {
		name string
		run  func(s *set)
	}{
		{"add", func(s *set) { Add(s.x, s.y, s.z) }},
		{"rmsnorm", func(s *set) { RMSNorm(s.x, gain, 1e-6, s.y, s.inv) }},
		{"rmsnorm grad", func(s *set) { RMSNormGrad(s.x, gain, s.inv, s.y, nil, s.dx, dgain) }},
		{"rmsnorm grad, add", func(s *set) { RMSNormGrad(s.x, gain, s.inv, s.y, s.z, s.dx, dgain) }},
		{"relu gate", func(s *set) { Gate(s.gu, rows, f, configs.ReLU, s.a) }},
		{"relu gate grad", func(s *set) { GateGrad(s.gu, s.a, rows, f, configs.ReLU, s.dgu) }},
		{"silu gate", func(s *set) { Gate(s.gu, rows, f, configs.SwiGLU, s.a) }},
		{"silu gate grad", func(s *set) { GateGrad(s.gu, s.a, rows, f, configs.SwiGLU, s.dgu) }},
		{"gelu mul", func(s *set) { GELUMul(s.g, M(s.e[p:], layers*p), rows, p, s.dg) }},
		{"gelu mul grad", func(s *set) {
			GELUMulGrad(s.g, M(s.e[p:], layers*p), s.y, rows, p, s.dg, M(s.de[p:], layers*p))
		}},
		{"gather", func(s *set) { Gather(table, ids, d, spec, Values, s.y) }},
		{"gather wide", func(s *set) { Gather(wide, ids, layers*p, spec, Values, s.e) }},
		{"scatter", func(s *set) { ScatterAdd(s.y, ids, d, 1, table) }},
		{"scatter wide", func(s *set) { ScatterAdd(s.e, ids, layers*p, 1e-3, wide) }},
		{"ple mix", func(s *set) { mix.Forward(s.de, gain[:p], s.e, rows, s.inv, s.e) }},
		{"ple mix grad", func(s *set) { mix.Grad(s.gu, gain[:p], s.inv, s.e, rows, s.de, dgain[:p]) }},
	} {
		for _, path := range simd.Paths() {
			if path == simd.Library {
				continue
			}
			b.Run(c.name+"/"+path.String(), func(b *testing.B) {
				defer simd.Use(simd.Use(path))
				i := 0
				for b.Loop() {
					c.run(&sets[i%copies])
					i++
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/rows, "µs/token")
			})
		}
	}
}
