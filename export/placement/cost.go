package placement

import (
	"fmt"
	"slices"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/targets"
)

// Cost is what a model of the chip says a token takes, in milliseconds. It is an estimate.
type Cost struct {
	Profile  string  `json:"profile"`
	StartMs  float64 `json:"start_ms"`  // at position 0
	MiddleMs float64 `json:"middle_ms"` // half way through the context
	EndMs    float64 `json:"end_ms"`    // at the last position
	From     int     `json:"from"`      // the first and the last of the positions that the rest is the mean of
	To       int     `json:"to"`
	MeanMs   float64 `json:"mean_ms"`
	PerSec   float64 `json:"tokens_per_second"`
	Parts    []Part  `json:"parts"` // add up to MeanMs
	Waits    []Wait  `json:"waits"` // likewise
}

// Part is a share of a token's time: the operations of a kind on what lies in one memory.
type Part struct {
	Name      string  `json:"name"`
	Memory    string  `json:"memory,omitempty"` // that it reads
	Ms        float64 `json:"ms"`
	ReadMs    float64 `json:"read_ms"`
	ComputeMs float64 `json:"compute_ms"`
	Bytes     float64 `json:"bytes"`
}

// Bound is what a part waits for: bytes or cycles.
func (p Part) Bound() string {
	if p.ComputeMs > p.ReadMs {
		return "cycles"
	}
	return "bytes"
}

// Wait is the share of a token's time that goes to one cause: the bytes of a memory, or cycles.
type Wait struct {
	For string  `json:"for"` // a memory, or cycles
	Ms  float64 `json:"ms"`
}

// Cycles is what a [Wait] is for where no memory is waited for.
const Cycles = "cycles"

// Estimate works out what a token takes, on average over the positions from to to, both included. An operation reads and
// computes at the same time where its memory and more cores than one allow that, and the longer counts; operations follow
// one another.
func (l *Layout) Estimate(c *configs.Config, t *targets.Target, p *targets.Profile, from, to int) Cost {
	list := l.operations(c, t, p)
	out := Cost{Profile: p.Name, From: from, To: to}
	out.StartMs, out.MiddleMs, out.EndMs = at(list, t, 0), at(list, t, c.ContextLength/2), at(list, t, c.ContextLength-1)
	places := map[string]int{}
	waits := map[string]float64{}
	for i := range list {
		o := &list[i]
		read, compute, ms, readBound := 0.0, 0.0, 0.0, 0.0
		positions := (float64(from) + float64(to)) / 2
		first, last := from, to
		if o.streamEach == 0 && o.cyclesEach == 0 {
			last = first // every position is alike
		}
		for position := first; position <= last; position++ {
			r, k, both := o.ms(t, position)
			read, compute, ms = read+r, compute+k, ms+both
			switch {
			case both > max(r, k): // one after the other
				readBound += r
			case r > k:
				readBound += both
			}
		}
		n := float64(last - first + 1)
		memory := ""
		if o.memory != nil {
			memory = o.memory.Name
		}
		key := o.name + "\x00" + memory
		j, ok := places[key]
		if !ok {
			j = len(out.Parts)
			places[key] = j
			out.Parts = append(out.Parts, Part{Name: o.name, Memory: memory})
		}
		part := &out.Parts[j]
		part.ReadMs += read / n
		part.ComputeMs += compute / n
		part.Ms += ms / n
		part.Bytes += o.bytes(positions + 1)
		out.MeanMs += ms / n
		waits[memory] += readBound / n
		waits[Cycles] += (ms - readBound) / n
	}
	out.PerSec = 1e3 / out.MeanMs
	out.Parts = slices.DeleteFunc(out.Parts, func(p Part) bool { return p.Ms == 0 })
	for i := range t.Memories {
		if m := t.Memories[i].Name; waits[m] > 0 {
			out.Waits = append(out.Waits, Wait{m, waits[m]})
		}
	}
	out.Waits = append(out.Waits, Wait{Cycles, waits[Cycles]})
	return out
}

// ms is the time of an operation at a position: of reading, of computing, and of both as they overlap.
func (o *operation) ms(t *targets.Target, position int) (read, compute, both float64) {
	positions := float64(position + 1)
	read = o.read(float64(t.Cores), positions)
	compute = (o.cycles + o.cyclesEach*positions) / t.ClockMHz / 1e3
	if o.memory != nil && (!o.memory.Overlap || o.alone && o.memory.Line > 1) {
		return read, compute, read + compute
	}
	return read, compute, max(read, compute)
}

// at is the time of a token at a position.
func at(list []operation, t *targets.Target, position int) float64 {
	ms := 0.0
	for i := range list {
		_, _, both := list[i].ms(t, position)
		ms += both
	}
	return ms
}

// Positions reads a range of positions such as 4-203, both ends included; empty means the whole context.
func Positions(s string, contextLength int) (from, to int, err error) {
	if s == "" {
		return 0, contextLength - 1, nil
	}
	var rest string
	if n, _ := fmt.Sscanf(s, "%d-%d%s", &from, &to, &rest); n != 2 || from < 0 || to < from {
		return 0, 0, fmt.Errorf("positions %q: give the first and the last, such as 4-203", s)
	}
	if to >= contextLength {
		return 0, 0, fmt.Errorf("positions %q: the context has the positions 0-%d", s, contextLength-1)
	}
	return from, to, nil
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
