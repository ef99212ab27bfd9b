package engine

import (
	"hash/fnv"
	"sort"

	"github.com/chiplm/chiplm/qat/reference"
)

func (m *testModel) pleScales() (ce, ct, ch float32) { return reference.PLEScales(&m.cfg) }

// forward is the logits of every position, [len(ids), V], by the plain reference.
func (m *testModel) forward(ids []int32) []float32 {
	r := &reference.Model{Config: &m.cfg, Matrices: m.matrices, Floats: m.floats, Cos: m.cos, Sin: m.sin}
	if m.tracing != nil {
		r.Trace = func(layer int, name string, position int, values []float32) {
			m.tracing.Add(Step{Layer: layer, Name: name, Position: position, Values: values})
		}
	}
	return r.Forward(ids)
}

func referenceDigest(ids []int32, logits []float32, v int) uint64 {
	h := fnv.New64a()
	for t, id := range ids {
		b := le.AppendUint32(le.AppendUint32(nil, uint32(t)), uint32(id))
		h.Write(append(b, floatBytes(logits[t*v:(t+1)*v]...)...))
	}
	return h.Sum64()
}

func referenceTop(logits []float32, k int) []TokenLogit {
	all := make([]TokenLogit, len(logits))
	for i, l := range logits {
		all[i] = TokenLogit{int32(i), l}
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].Logit > all[j].Logit || (all[i].Logit == all[j].Logit && all[i].ID < all[j].ID)
	})
	return all[:min(k, len(all))]
}
