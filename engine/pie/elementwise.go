package pie

import (
	"math"
	"math/rand/v2"
)

// elementwiseKernels are the steps over vectors: the length is Columns, work is counted in values.
func elementwiseKernels() []Kernel {
	steps := func(step int) func(r *rand.Rand) Shape {
		return func(r *rand.Rand) Shape { return Shape{Columns: wholes(r, step, 400)} }
	}
	of := func(lengths ...int) []Shape {
		var all []Shape
		for _, n := range lengths {
			all = append(all, Shape{Columns: n})
		}
		return all
	}
	kernel := func(symbol, file, about string, step int, shapes []Shape, build func(n int, v Values, r *rand.Rand) []Argument) Kernel {
		return Kernel{
			Symbol: "chiplm_pie_" + symbol, File: file, About: about, Shapes: shapes, Any: steps(step), Work: columns,
			Make: func(s Shape, v Values, r *rand.Rand) []Argument { return build(s.Columns, v, r) },
		}
	}
	all := []Kernel{
		kernel("top", "quantise.S", "largest magnitude", 8, of(32, 64, 128, 320), func(n int, v Values, r *rand.Rand) []Argument {
			x := someFloats(n, v, r)
			if v == Huge && r.IntN(2) == 0 {
				x[r.IntN(n)] = math.Float32frombits(0x7fc00000 | r.Uint32()&0x80000000)
			}
			return []Argument{read("x", floatBytes(x)), word("n", n)}
		}),
		kernel("codes", "quantise.S", "codes of 8 bits", 8, of(32, 64, 128, 320), makeCodes),
		kernel("sums", "quantise.S", "sums of codes by chunks", 32, of(128, 320), func(n int, v Values, r *rand.Rand) []Argument {
			return []Argument{read("codes", someCodes(n, v, r)), word("chunks", n/32), write("sums", n/8)}
		}),
		kernel("squares", "norm.S", "sum of squares", 8, of(32, 64, 128), func(n int, v Values, r *rand.Rand) []Argument {
			return []Argument{read("x", floatBytes(someFloats(n, v, r))), word("n", n)}
		}),
		kernel("gain", "norm.S", "(x * r) * gain", 8, of(64, 128), func(n int, v Values, r *rand.Rand) []Argument {
			gain := someFloats(n, Random, r)
			return []Argument{read("x", floatBytes(someFloats(n, v, r))), floatWord("r", 1+r.Float32()), read("gain", floatBytes(gain)),
				word("n", n), write("y", 4*n)}
		}),
		kernel("add", "elementwise.S", "x + y", 8, of(128), func(n int, v Values, r *rand.Rand) []Argument {
			return []Argument{change("x", floatBytes(someFloats(n, v, r))), read("y", floatBytes(someFloats(n, Random, r))), word("n", n)}
		}),
		kernel("blend", "elementwise.S", "(y + x * a) * b", 4, of(384), func(n int, v Values, r *rand.Rand) []Argument {
			return []Argument{change("y", floatBytes(someFloats(n, v, r))), read("x", floatBytes(someFloats(n, Random, r))),
				floatWord("a", 1+r.Float32()), floatWord("b", 1+r.Float32()), word("n", n)}
		}),
		kernel("gate", "elementwise.S", "gate of relu", 8, of(320), func(n int, v Values, r *rand.Rand) []Argument {
			gate := someGates(n, v, r)
			return []Argument{change("gate", floatBytes(gate)), read("up", floatBytes(someFloats(n, Random, r))), word("n", n)}
		}),
		kernel("rotate", "elementwise.S", "pairs turned", 4, of(32, 64), func(n int, v Values, r *rand.Rand) []Argument {
			x := someFloats(n, v, r)
			for i := range x {
				if math.IsInf(float64(x[i]), 0) { // infinities of two signs would make NaNs
					x[i] = 1e30
				}
			}
			cosines, sines := make([]float32, n/2), make([]float32, n/2)
			for i := range cosines {
				angle := 7 * r.Float64()
				cosines[i], sines[i] = float32(math.Cos(angle)), float32(math.Sin(angle))
			}
			return []Argument{change("x", floatBytes(x)), word("half", n/2), read("cosines", floatBytes(cosines)), read("sines", floatBytes(sines))}
		}),
		kernel("gelu", "sigmoid.S", "the argument of gelu's exp", 4, of(64), func(n int, v Values, r *rand.Rand) []Argument {
			constants := floatBytes([]float32{-0x1.988454p+0, 0x1.6e4e26p-5})
			return []Argument{read("x", floatBytes(someFloats(n, v, r))), word("n", n), write("z", 4*n), read("constants", constants)}
		}),
		kernel("negate", "sigmoid.S", "-x", 8, of(64), func(n int, v Values, r *rand.Rand) []Argument {
			return []Argument{read("x", floatBytes(someFloats(n, v, r))), word("n", n), write("y", 4*n)}
		}),
		kernel("sigmoid", "sigmoid.S", "(x / (1 + exp)) * y", 4, of(64), makeSigmoid),
		kernel("open", "neurons.S", "marks of open gates", 16, of(320), func(n int, v Values, r *rand.Rand) []Argument {
			gate := someGates(n, v, r)
			return []Argument{read("gate", floatBytes(gate)), word("n", n), change("marks", someMarks(n, r))}
		}),
		kernel("used", "neurons.S", "marks of codes that are not 0", 16, of(320), func(n int, v Values, r *rand.Rand) []Argument {
			codes := someCodes(n, v, r)
			for i := range codes {
				codes[i] &= byte(-r.IntN(2))
			}
			return []Argument{read("codes", codes), word("n", n), change("marks", someMarks(n, r))}
		}),
		kernel("floats4", "floats.S", "weights of 4 bits as floats", 32, of(128, 384), func(n int, v Values, r *rand.Rand) []Argument {
			codes := make([]byte, n/2)
			for i := range codes {
				switch v {
				case AllLeast:
					codes[i] = 0x99
				case AllMost:
					codes[i] = 0x77
				case AllZero:
				default:
					codes[i] = byte(r.IntN(15)-7)&15 | byte(r.IntN(15)-7)<<4
				}
			}
			return []Argument{read("codes", codes), word("blocks", n/32), floatWord("scale", someScales(1, v, r)[0]), write("y", 4*n)}
		}),
	}
	for i := range all {
		switch all[i].Symbol {
		case "chiplm_pie_top", "chiplm_pie_squares", "chiplm_pie_open", "chiplm_pie_used":
			all[i].Returns = true
		}
	}
	return all
}

// makeCodes scales by 127 / m as the engine does, to finite vectors: others have no codes.
func makeCodes(n int, v Values, r *rand.Rand) []Argument {
	x := someFloats(n, v, r)
	m := float32(0)
	for i := range x {
		if math.IsInf(float64(x[i]), 0) {
			x[i] = math.MaxFloat32
		}
		m = max(m, float32(math.Abs(float64(x[i]))))
	}
	inverse := float32(0)
	if m >= 0x1p-100 {
		inverse = 127 / m
	}
	padded := roundUp(n, 64)
	return []Argument{read("x", floatBytes(x)), word("n", n), floatWord("inverse", inverse), write("codes", padded), word("padded", padded)}
}

func makeSigmoid(n int, v Values, r *rand.Rand) []Argument {
	exps := make([]float32, n)
	for i := range exps {
		switch v {
		case AllLeast, AllZero:
			exps[i] = float32(math.Exp(-86))
		case AllMost, Huge:
			exps[i] = float32(math.Exp(86))
		case Alternating: // 1 + this has a fraction of all ones, for which Newton's method alone rounds wrongly
			exps[i] = 0x1.fffffcp-1
		default:
			exps[i] = float32(math.Exp(172*r.Float64() - 86))
			if r.IntN(2) == 0 {
				exps[i] = r.Float32()
			}
		}
	}
	x := someFloats(n, Random, r)
	return []Argument{read("x", floatBytes(x)), read("exps", floatBytes(exps)), read("by", floatBytes(someFloats(n, Random, r))),
		word("n", n), write("y", 4*n), word("guess", 0x7ef311c7)}
}

// someGates are floats, zeros of both signs among them, and for huge ones NaNs, which are not above 0.
func someGates(n int, v Values, r *rand.Rand) []float32 {
	gate := someFloats(n, v, r)
	for i := range gate {
		switch r.IntN(8) {
		case 0:
			gate[i] = math.Float32frombits(r.Uint32() & 0x80000000)
		case 1, 2:
			if v == Huge {
				gate[i] = math.Float32frombits(0x7f800001 | r.Uint32()&0x80400000)
			}
		}
	}
	return gate
}

func someMarks(n int, r *rand.Rand) []byte {
	marks := make([]byte, n)
	for i := range marks {
		marks[i] = byte(r.IntN(2))
	}
	return marks
}
