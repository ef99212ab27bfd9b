package cost

import (
	"fmt"
	"math"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/export/targets"
)

// The study's engine leaves about 210 KB of SRAM for weights. Its images are not ours: only their weights count here.
const studySRAM = 210_000

// PublishedProfile is the profile that published speeds are predicted with.
const PublishedProfile = "study"

// shapes are the published models, as what is different from combo.yaml. The wider per-layer embeddings take their weights
// from the feed-forward: only with d_ff 256 do the published counts of parameters come out. The esp32-ai model comes in
// groups of 128; the others in groups of 64. That plain has d_ff 384 is inferred: no count is published for it.
var shapes = map[string][]string{
	"combo":         nil,
	"wide-ple":      {"ple_dim=128", "d_ff=256"},
	"varC":          {"ple_dim=128", "d_ff=256", "vocab_size=8192"},
	"v16384":        {"ple_dim=128", "d_ff=256", "vocab_size=16384"},
	"plain":         {"ple_dim=0", "d_ff=384", "activation=swiglu"},
	"plain-relu":    {"ple_dim=0", "d_ff=384"},
	"plain-2bit":    {"ple_dim=0", "d_ff=384", "activation=swiglu", "quant.weights.bits=2"},
	"plain-experts": {"ple_dim=0", "d_ff=384", "activation=swiglu", "experts=4"},
	"esp32-ai": {"vocab_size=32768", "d_model=96", "d_ff=66", "ple_dim=128", "activation=swiglu", "qk_norm=false",
		"context_length=512", "quant.weights.group=128"},
}

// parameters is how many values of the target were chosen by published figures: how much faster PSRAM is at its higher clock,
// the cost of the means of clusters, and the share of rows that is then read.
const parameters = 3

// Use says what a published figure is to the model of the chip.
type Use string

// A figure was predicted, or a free parameter of the model was chosen by it.
const (
	Predicted  Use = "predicted"
	Calibrates Use = "calibrates"
)

// Published is a figure that others published, beside what the model says.
type Published struct {
	What      string  `json:"what"`
	Positions string  `json:"positions"` // that the model's figure is the mean over
	Unit      string  `json:"unit"`
	Published float64 `json:"published"`
	Model     float64 `json:"model"`
	Percent   float64 `json:"difference_percent"`
	Use       Use     `json:"use"`
	Note      string  `json:"note,omitempty"`

	work func(*study) float64
}

// Off says whether the model misses a figure by more than five percent.
func (p *Published) Off() bool { return math.Abs(p.Percent) > 5 }

// study estimates published models on one chip.
type study struct {
	chip *targets.Target
	err  error
}

// run says how a published model was run.
type run struct {
	model    string
	full     bool // the whole output layer is read
	fast     bool // PSRAM at its higher clock
	from, to int  // 0, 0: the whole context
}

// of estimates a run; after an error, which is kept, the result means nothing.
func (s *study) of(r run) placement.Cost {
	if s.err != nil {
		return placement.Cost{}
	}
	c, err := shape(r.model)
	if err != nil {
		s.err = err
		return placement.Cost{}
	}
	chip := s.chip
	if r.fast {
		if chip = chip.With(image.PSRAM); chip == nil {
			s.err = fmt.Errorf("target %s has no faster psram", s.chip.Name)
			return placement.Cost{}
		}
	}
	p := chip.Profile(PublishedProfile)
	m := placement.Assume(c, p)
	if r.full && m != nil {
		m.Head = nil
	}
	b := placement.EstimateBuffers(c, 1)
	b.Arena, b.Logits = chip.Memory(image.SRAM).Usable-studySRAM, 0
	l, err := placement.Plan(c, chip, b, 0, m)
	if err != nil {
		s.err = err
		return placement.Cost{}
	}
	if r.to == 0 {
		r.to = c.ContextLength - 1
	}
	return l.Estimate(c, chip, p, r.from, r.to)
}

// shape is a published model.
func shape(name string) (*configs.Config, error) {
	return configs.Load("builtin:combo.yaml", append([]string{"name=" + name}, shapes[name]...)...)
}

// figures are the published ones. Speeds of older engines count as ratios only, for what did not change between engines.
func figures() []Published {
	const whole = "0-255" // the context
	speed := func(what string, perSecond float64, use Use, note string, r run) Published {
		return Published{What: what, Positions: whole, Unit: "tok/s", Published: perSecond, Use: use, Note: note,
			work: func(s *study) float64 { return s.of(r).PerSec }}
	}
	ms := func(what string, published float64, use Use, r run) Published {
		r.model, r.from, r.to = "esp32-ai", 4, 203
		return Published{What: "esp32-ai model, " + what, Positions: fmt.Sprintf("%d-%d", r.from, r.to), Unit: "ms", Published: published, Use: use,
			work: func(s *study) float64 { return s.of(r).MeanMs }}
	}
	times := func(what string, published float64, note, slow, quick string) Published {
		return Published{What: what, Positions: whole, Unit: "times", Published: published, Use: Predicted, Note: note,
			work: func(s *study) float64 { return s.of(run{model: slow}).MeanMs / s.of(run{model: quick}).MeanMs }}
	}
	const older = "an older engine: only the ratio counts"
	return []Published{
		ms("full output layer, 80 MHz", 25.00, Predicted, run{full: true}),
		ms("full, 120 MHz", 18.90, Calibrates, run{full: true, fast: true}),
		ms("two-stage, 80 MHz", 11.52, Calibrates, run{}),
		ms("two-stage, 120 MHz", 9.17, Predicted, run{fast: true}),
		speed("combo", 91, Calibrates, "", run{model: "combo"}),
		speed("combo, PLE twice as wide", 84, Predicted, "the previous engine", run{model: "wide-ple"}),
		speed("vocabulary 8,192, PLE twice as wide", 81, Predicted, "", run{model: "varC"}),
		speed("vocabulary 16,384, PLE twice as wide", 74, Predicted, "itself a prediction", run{model: "v16384"}),
		{What: "combo, end of the context over its start", Positions: "255, 0", Unit: "times", Published: 1.6, Use: Predicted,
			work: func(s *study) float64 { c := s.of(run{model: "combo"}); return c.EndMs / c.StartMs }},
		times("plain against combo", 98.0/80, older, "plain", "combo"),
		times("silent neurons skipped", 1.3, older, "plain", "plain-relu"),
		{What: "what the per-layer embeddings cost", Positions: whole, Unit: "ms", Published: 0.5, Use: Predicted, Note: "an older engine",
			work: func(s *study) float64 {
				return s.of(run{model: "combo"}).MeanMs - s.of(run{model: "plain-relu"}).MeanMs
			}},
		times("4 experts, 1 read: about equal", 1.0, older, "plain", "plain-experts"),
		times("2 bits in place of 4", 1.5, older, "plain", "plain-2bit"),
	}
}

// Predict holds the model of a chip against what was published for it.
func Predict(chip *targets.Target) ([]Published, error) {
	if chip.Profile(PublishedProfile) == nil {
		return nil, fmt.Errorf("target %s has no profile %q, which published figures are predicted with", chip.Name, PublishedProfile)
	}
	s := &study{chip: chip}
	list := figures()
	for i := range list {
		p := &list[i]
		p.Model = p.work(s)
		if s.err != nil {
			return nil, fmt.Errorf("%s: %w", p.What, s.err)
		}
		p.Percent = 100 * (p.Model/p.Published - 1)
	}
	return list, nil
}
