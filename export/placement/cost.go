package placement

import (
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/targets"
)

// Cost is what a model of the chip says a token takes. It is an estimate; what is read of head and neurons is the layout's.
type Cost struct {
	StartMs  float64 `json:"start_ms"`  // at position 0
	MiddleMs float64 `json:"middle_ms"` // half way through the context
	EndMs    float64 `json:"end_ms"`    // at the last position
	MeanMs   float64 `json:"mean_ms"`   // over all positions
	PerSec   float64 `json:"tokens_per_second"`
	Parts    []Part  `json:"parts_at_middle"`

	fixedMs, perPositionMs float64
}

// Part is a share of a token's time. Where the chip computes while it reads, the longer of the two counts.
type Part struct {
	Name      string  `json:"name"`
	Ms        float64 `json:"ms"`
	ReadMs    float64 `json:"read_ms"`
	ComputeMs float64 `json:"compute_ms"`
}

// Bound is what a part waits for: bytes or cycles.
func (p Part) Bound() string {
	if p.ComputeMs > p.ReadMs {
		return "cycles"
	}
	return "bytes"
}

// atOnce is a part that reads and computes at the same time.
func atOnce(name string, read, compute float64) Part {
	return Part{Name: name, Ms: max(read, compute), ReadMs: read, ComputeMs: compute}
}

// At is the time of a token at a position, in milliseconds.
func (c Cost) At(position int) float64 { return c.fixedMs + c.perPositionMs*float64(position+1) }

// cost adds up, per memory, the larger of reading and computing (the caches fetch while the cores compute), then the
// single rows, the attention over all positions so far, and the fixed work.
func (l *Layout) cost(c *configs.Config, t *targets.Target) Cost {
	var out Cost
	cyclesPerMs := float64(t.Cores) * t.ClockMHz * 1e3
	for _, m := range t.Memories {
		var bytes, cycles, rows float64
		for _, p := range l.Tensors {
			if p.Tier != m.Tier {
				continue
			}
			bytes += p.ReadBytes - p.RowBytes
			cycles += p.Weights * t.Kernels.Cycles(p.Bits)
			rows += rowMs(m, p.RowReads, p.RowBytes)
		}
		if m.Tier == l.Memories[len(l.Memories)-1].Tier { // rotary tables stay in the image: a row of each per token
			rows += rowMs(m, 2, float64(4*c.DModel/c.NHeads))
		}
		out.Parts = append(out.Parts,
			atOnce("products from "+m.Name, bytes/m.SequentialMBs.Value/1e3, cycles/cyclesPerMs),
			atOnce("rows from "+m.Name, rows, 0))
	}
	out.Parts = append(out.Parts, atOnce("norms, rotations, quantising", 0,
		(t.Fixed.UsPerToken.Value+t.Fixed.UsPerLayer.Value*float64(c.NLayers))/1e3))
	for _, p := range out.Parts {
		out.fixedMs += p.Ms
	}
	cache := t.Memory(t.Buffers.Cache)
	read := float64(l.Buffers.Cache) / float64(c.ContextLength) / cache.SequentialMBs.Value / 1e3
	compute := float64(2*c.DModel*c.NLayers) * t.Kernels.Attention.Value / cyclesPerMs
	out.perPositionMs = max(read, compute)
	middle := c.ContextLength / 2
	out.Parts = append(out.Parts, atOnce("attention, cache in "+cache.Name, read*float64(middle+1), compute*float64(middle+1)))
	out.StartMs, out.MiddleMs, out.EndMs = out.At(0), out.At(middle), out.At(c.ContextLength-1)
	out.MeanMs = (out.StartMs + out.EndMs) / 2 // the time is linear in the position
	out.PerSec = 1e3 / out.MeanMs
	kept := out.Parts[:0]
	for _, p := range out.Parts {
		if p.Ms > 0 {
			kept = append(kept, p)
		}
	}
	out.Parts = kept
	return out
}

func rowMs(m targets.Memory, reads int, bytes float64) float64 {
	return (float64(reads)*m.RowLatencyUs.Value + bytes/m.RowMBs.Value) / 1e3
}

// EstimateBuffers gives the engine's buffers for a model without asking the engine: for tables shown before there is
// an image. The cache is exact (8-bit keys and values with a float scale per head); the arena is an estimate.
func EstimateBuffers(c *configs.Config, batch int) Buffers {
	perPosition := int64(c.NLayers) * int64(2*c.DModel+2*4*c.NHeads)
	wide := int64(max(4*c.DModel+2*c.DFF+c.NLayers*c.PLEDim, 1))
	return Buffers{
		Arena:  align(4*int64(batch)*wide+12*int64(c.ContextLength), image.Align),
		Logits: 4 * int64(c.VocabSize),
		Cache:  perPosition * int64(c.ContextLength),
	}
}
