package eval

import (
	"slices"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/qat"
)

// runner is an engine, or a [meter] around one.
type runner interface {
	Forward(ids []int32, logits []float32) error
	ForwardLast(ids []int32, logits []float32) error
	ForwardBest(ids []int32, search engine.Search, k int) ([]engine.TokenLogit, error)
	Position() int
	Reset()
	Reads() (*engine.Reads, error)
	Close() error
}

// meter is an engine whose run is watched: from the calls, and from the values between its steps, it works out what the
// run must read. It never looks at the engine's own count of bytes, so that one can be held against the other; only how
// many rows and bounds of a clustered head a search came to it takes from there.
type meter struct {
	*engine.Engine
	config *configs.Config
	batch  int
	dense  bool
	run    placement.Conditions

	searched int64 // rows of the head that searches have read before this one

	// The expert whose steps are being shown: gate for each of its positions, then the gated neurons for each, then down.
	last         string // the step before
	positions    int
	open, spoken []bool  // neurons whose gate is open, whose value is not 0 once quantised, at one of the positions
	codes        []int8  // scratch
	opened, used []int64 // neurons of each layer, added up over the positions
}

// newMeter makes an engine and watches it. A model of other sizes than c would be counted wrongly.
func newMeter(im *engine.Image, c *configs.Config, opt engine.Options) (*meter, error) {
	e, err := engine.New(im, opt)
	if err != nil {
		return nil, err
	}
	if opt.Batch == 0 {
		opt.Batch = engine.DefaultBatch
	}
	m := &meter{Engine: e, config: c, batch: opt.Batch, dense: opt.Dense,
		open: make([]bool, c.DFF), spoken: make([]bool, c.DFF), codes: make([]int8, c.DFF),
		opened: make([]int64, c.NLayers), used: make([]int64, c.NLayers)}
	m.run.Layers = make([]placement.Neurons, c.NLayers)
	m.run.Search.Clusters = im.Model().Clusters
	if err := e.Trace(m.see); err != nil {
		return nil, err
	}
	return m, nil
}

// Forward is [engine.Engine.Forward].
func (m *meter) Forward(ids []int32, logits []float32) error {
	m.feed(len(ids), func(end int) bool { return logits != nil })
	return m.Engine.Forward(ids, logits)
}

// ForwardLast is [engine.Engine.ForwardLast].
func (m *meter) ForwardLast(ids []int32, logits []float32) error {
	m.feed(len(ids), func(end int) bool { return end == len(ids) })
	return m.Engine.ForwardLast(ids, logits)
}

// ForwardBest is [engine.Engine.ForwardBest].
func (m *meter) ForwardBest(ids []int32, search engine.Search, k int) ([]engine.TokenLogit, error) {
	m.feed(len(ids), func(end int) bool { return search.Full && end == len(ids) })
	best, err := m.Engine.ForwardBest(ids, search, k)
	if search.Full || err != nil {
		return best, err
	}
	m.run.Heads++
	m.run.Search.Searches++
	reads, err := m.Reads()
	if err != nil {
		return nil, err
	}
	m.run.HeadRows += reads.SearchedRows - m.searched
	m.run.Search.Rows += reads.SearchedRows - m.searched
	m.run.Search.Blocks = reads.BlocksRead
	m.searched = reads.SearchedRows
	return best, nil
}

// feed notes the passes of a call: n ids, cut at multiples of the batch. head says whether the pass that ends before
// an id computes logits.
func (m *meter) feed(n int, head func(end int) bool) {
	position := m.Position()
	for done := 0; done < n; {
		block := min(m.batch, n-done)
		m.run.Outside(m.config, position+done, block, head(done+block))
		done += block
	}
}

// see notes what is read of a feed-forward.
func (m *meter) see(s engine.Step) {
	switch s.Name {
	case configs.Gate:
		if m.last != configs.Gate {
			m.positions = 0
			clear(m.open)
			clear(m.spoken)
		}
		m.positions++
		for i, v := range s.Values {
			if v > 0 {
				m.open[i] = true
				m.opened[s.Layer]++
			}
		}
	case arch.StepFFN:
		qat.QuantiseVector(s.Values, m.codes)
		for i, q := range m.codes {
			if q != 0 {
				m.spoken[i] = true
				m.used[s.Layer]++
			}
		}
	case configs.Down:
		if m.last != configs.Down {
			m.run.Layers[s.Layer].Add(m.neurons())
		}
	}
	m.last = s.Name
}

// neurons is what the expert that has just run has read.
func (m *meter) neurons() placement.Neurons {
	all := placement.AllNeurons(m.config)
	if m.dense || m.config.Activation != configs.ReLU || m.positions > engine.SparseMost {
		return all
	}
	n := placement.Neurons{Experts: 1}
	group, last := m.config.WeightQuant(configs.ClassTrunk).Group, -1
	if group == 0 {
		group = m.config.DFF
	}
	for i := range m.open {
		if m.open[i] {
			n.Up++
		}
		if m.spoken[i] {
			n.Down++
			if i/group != last {
				last = i / group
				n.Groups++
			}
		}
	}
	return n
}

// conditions is what the run has asked so far.
func (m *meter) conditions() placement.Conditions {
	run := m.run
	run.Layers = slices.Clone(run.Layers)
	return run
}
