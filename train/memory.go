package train

import "github.com/chiplm/chiplm/configs"

// predictMemory is about how many bytes training takes. The weights, the sum of the gradients and two moments are held
// once. Each worker holds gradients and quantised weights, and for each position of a micro-batch the results of the
// operations and their gradients; its graph for validation holds quantised weights and results alone. The program
// itself and what it reads take some more.
func predictMemory(cfg *configs.Config, workers int) int64 {
	const program = 60 << 20
	params := int64(cfg.Parameters())
	d, f, p, l := int64(cfg.DModel), int64(cfg.DFF), int64(cfg.PLEDim), int64(cfg.NLayers)
	h, t := int64(cfg.NHeads), int64(cfg.ContextLength)
	layer := 8*d + 3*f + 4*p + h*t // norms, queries, keys, values, sums; gate, up and their product; attention weights
	results := int64(cfg.Train.MicroBatch) * t * (l*layer + 2*l*p + int64(cfg.VocabSize))
	return program + 4*(4*params+int64(workers)*(2*params+2*results+params+results))
}
