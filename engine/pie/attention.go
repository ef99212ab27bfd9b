package pie

import (
	"math"
	"math/rand/v2"
)

// attentionKernels are the steps of attention over one head: shapes are its width (Columns) and positions (N), work is counted
// in positions.
func attentionKernels() []Kernel {
	positions := func(s Shape) int { return s.N }
	atWidth := func(width int) []Shape {
		return []Shape{{Columns: width, N: 64}, {Columns: width, N: 128}, {Columns: width, N: 256}}
	}
	heads := func(r *rand.Rand) Shape {
		s := Shape{Columns: []int{16, 16, 16, 32, 32, 32, 64, 64, 64, 48, 128}[r.IntN(11)], N: length(r, 300)}
		if r.IntN(6) == 0 {
			s.N = []int{16, 32, 64}[r.IntN(3)]
		}
		return s
	}
	alone := func(r *rand.Rand) Shape { return Shape{N: length(r, 300)} }
	long := []Shape{{N: 64}, {N: 128}, {N: 256}}
	return []Kernel{
		{
			Symbol: "chiplm_pie_scores", File: "scores.S", About: "scores of a query and their largest",
			Shapes: append(atWidth(32), Shape{Columns: 16, N: 128}, Shape{Columns: 64, N: 128}), Any: heads, Make: makeScores,
			Work: positions, Returns: true,
		},
		{
			Symbol: "chiplm_pie_exp", File: "exp.S", About: "exp(v - most)",
			Shapes: long, Any: alone, Make: makeExp, Work: positions,
		},
		{
			Symbol: "chiplm_pie_weigh", File: "weigh.S", About: "sum of weights, weights times scales",
			Shapes: long, Any: alone, Make: makeWeigh, Work: positions, Returns: true,
		},
		{
			Symbol: "chiplm_pie_mix", File: "mix.S", About: "values weighted by shares",
			Shapes: append(atWidth(32), Shape{Columns: 16, N: 128}, Shape{Columns: 64, N: 128}), Any: heads, Make: makeMix,
			Work: positions,
		},
		{
			Symbol: "chiplm_pie_divide", File: "divide.S", About: "sums of values times scale / total",
			Shapes: []Shape{{Columns: 32}}, Any: func(r *rand.Rand) Shape { return Shape{Columns: wholes(r, 4, 128)} },
			Make: makeDivide, Work: columns,
		},
	}
}

func columns(s Shape) int { return s.Columns }

func makeScores(s Shape, v Values, r *rand.Rand) []Argument {
	scales := someScales(s.N, v, r)
	query := r.Float32()
	codes, keys := someCodes(s.Columns, v, r), someCodes(s.N*s.Columns, v, r)
	switch v {
	case Huge: // scores that overflow
		if r.IntN(2) == 0 {
			query = math.MaxFloat32
		}
	case Random:
		if r.IntN(12) == 0 { // every score is far below 0
			query = math.MaxFloat32
			codes, keys = someCodes(s.Columns, AllMost, r), someCodes(s.N*s.Columns, AllLeast, r)
		}
	case Tiny:
		query *= 0x1p-20
	case AllZero:
		if r.IntN(2) == 0 { // every score is -0
			codes, keys = someCodes(s.Columns, AllMost, r), someCodes(s.N*s.Columns, AllLeast, r)
		}
	}
	if v == Huge || v == Random && r.IntN(2) == 0 { // scores that are no numbers, the first one at times
		for i := range scales {
			if i > 0 && r.IntN(4) == 0 || i == 0 && r.IntN(6) == 0 {
				scales[i] = float32(math.NaN())
			}
		}
	}
	how := append(words(uint32(s.Columns)), floatBytes([]float32{query, float32(1 / math.Sqrt(float64(s.Columns)))})...)
	return []Argument{
		read("query", codes), read("keys", keys),
		read("key_scales", floatBytes(scales)), word("n", s.N), read("how", how), change("scores", output(4*s.N)),
	}
}

// expConstants are those of docs/numerics.md in the order that pie.h gives.
var expConstants = []float32{
	0, 0x1.715476p+0, 0x1.8p23, 0x1.63p-1, -0x1.bd0106p-13, 0x1.a01a02p-13, 0x1.6c16c2p-10, 0x1.111112p-7,
	0x1.555556p-5, 0x1.555556p-3, 0.5, 1, -86, 86, 43, 0,
}

func makeExp(s Shape, v Values, r *rand.Rand) []Argument {
	most := float32(r.NormFloat64() * 10)
	x := make([]float32, roundUp(s.N, 8))
	spread := math.Exp2(float64(r.IntN(12) - 4)) // up to 128: beyond -86 and 43 at times
	for i := range x {
		switch v {
		case AllLeast:
			x[i] = -1e30
		case AllMost:
			x[i] = most
		case Alternating:
			x[i] = most - 200*float32(i&1)
		case AllZero:
			most = 0
		case Tiny:
			most, x[i] = 0, float32(r.NormFloat64()*0x1p-100)
		case Huge:
			x[i] = []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, 1, 0}[r.IntN(6)]
			most = []float32{float32(math.Inf(1)), math.MaxFloat32, 0}[s.N%3]
		default:
			x[i] = most - float32(math.Abs(r.NormFloat64())*spread)
			if r.IntN(4) == 0 {
				x[i] = most + float32(r.NormFloat64()*spread)
			}
		}
	}
	if v == Random && r.IntN(2) == 0 { // one difference alone that is out of range, by the value or by what is taken off
		most = float32(r.NormFloat64())
		for i := range x {
			x[i] = most - r.Float32()
		}
		if r.IntN(2) == 0 {
			x[max(r.IntN(s.N), (s.N-1)*r.IntN(2))] = []float32{-100, 100, -87}[r.IntN(3)]
		} else {
			most = []float32{130, -130}[r.IntN(2)]
		}
	}
	if (v == Alternating || v == Random) && r.IntN(3) == 0 { // just out of range, by bits in the lower half of a word alone
		most = 43
		for i := range x {
			x[i] = 1
		}
		x[r.IntN(s.N)] = -43.125
	}
	return []Argument{change("v", floatBytes(x)), word("n", s.N), floatWord("most", most), read("constants", floatBytes(expConstants))}
}

func makeWeigh(s Shape, v Values, r *rand.Rand) []Argument {
	weights := make([]float32, roundUp(s.N, 8))
	for i := range weights {
		weights[i] = float32(math.Exp(-10 * r.Float64()))
		if v == AllMost {
			weights[i] = 1
		}
	}
	scales := someScales(s.N, v, r)
	if v == Huge {
		for i := range scales {
			scales[i] *= math.MaxFloat32
		}
		if r.IntN(3) == 0 {
			scales[r.IntN(s.N)] = float32(math.NaN())
		}
	}
	return []Argument{change("weights", floatBytes(weights)), read("scales", floatBytes(scales)), word("n", s.N)}
}

func makeMix(s Shape, v Values, r *rand.Rand) []Argument {
	shares := make([]byte, roundUp(s.N, 16))
	sharp := math.Exp2(float64(r.IntN(8) - 2)) // from nearly even shares to one that has all
	for i := range s.N {
		switch v {
		case AllZero, Tiny:
		case AllLeast, AllMost, Alternating:
			shares[i] = 127
		default:
			shares[i] = byte(math.RoundToEven(127 * math.Exp(-sharp*r.Float64())))
		}
	}
	if v == AllLeast || v == AllMost { // blocks that fill the lanes of QACC, and that would overflow them by little
		switch r.IntN(3) {
		case 0:
			for i, left := 32, 65+r.IntN(32); i < min(48, s.N); i++ {
				shares[i] = byte(min(left, 6))
				left -= int(shares[i])
			}
		case 1:
			clear(shares[:min(16, s.N)])
		}
	}
	return []Argument{
		read("shares", shares), read("values", someCodes(s.N*s.Columns, v, r)), word("n", s.N), word("d", s.Columns),
		change("sums", output(4*s.Columns)),
	}
}

func makeDivide(s Shape, v Values, r *rand.Rand) []Argument {
	total := float32(math.Exp2(17 * r.Float64()))
	scale := float32(math.Exp2(120*r.Float64() - 60))
	sums := make([]uint32, s.Columns)
	for i := range sums {
		bound := 1 << (1 + r.IntN(30))
		switch v {
		case AllZero:
		case AllMost:
			sums[i] = math.MaxInt32
		case AllLeast:
			sums[i] = 1<<31 + 1 // -(2^31 - 1)
		default:
			sums[i] = uint32(int32(r.IntN(2*bound) - bound))
		}
	}
	switch v {
	case Tiny:
		scale, total = 0x1p-60, 1<<17
	case Huge:
		scale, total = 0x1p60, 1
	}
	return []Argument{
		read("sums", words(sums...)), word("n", s.Columns), floatWord("scale", scale), floatWord("total", total),
		floatWord("inverse", 1/total), write("o", 4*s.Columns),
	}
}
