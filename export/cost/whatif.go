package cost

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/export/targets"
)

// WhatIf is a change, and what it would do to a token.
type WhatIf struct {
	Change   string  `json:"change"`
	Ms       float64 `json:"mean_ms"`
	GainedMs float64 `json:"gained_ms"`
	Quality  bool    `json:"changes_results"` // the model must be trained or quantised anew, or says something else
}

// variant is a change to try: it alters a copy of the subject, and reports whether it applies.
type variant struct {
	name    string
	quality bool
	apply   func(s *Subject) bool
}

// variants are the changes that may help. Those of the configuration keep every other size as it is.
func variants() []variant {
	config := func(name string, change func(c *configs.Config) bool) variant {
		return variant{name, true, func(s *Subject) bool {
			c := *s.Config
			s.Config = &c
			c.Quant.Classes = maps.Clone(c.Quant.Classes)
			return change(&c)
		}}
	}
	return []variant{
		{"120 MHz PSRAM, where the board bears it", false, func(s *Subject) bool {
			fast := s.Target.With(image.PSRAM)
			if fast == nil {
				return false
			}
			s.Target = fast
			s.Profile = fast.Profile(s.Profile.Name)
			return true
		}},
		{"the output layer searched instead of read in full", false, func(s *Subject) bool {
			whole := s.reads()
			was := whole != nil && whole.Head != nil && !whole.Head.Idle
			s.FullHead, s.Searched = false, true
			s.Measured = withoutHead(s.Measured)
			now := s.reads()
			return !was && now != nil && now.Head != nil
		}},
		{"the output layer read in full instead of searched", false, func(s *Subject) bool {
			m := s.reads()
			s.FullHead = true
			return m != nil && m.Head != nil && !m.Head.Idle
		}},
		{"64 KB more SRAM for weights", false, func(s *Subject) bool {
			m := s.Target.Memory(image.SRAM)
			if m == nil || m.Bytes-m.Usable < 64<<10 {
				return false
			}
			t := *s.Target
			t.Memories = slices.Clone(t.Memories)
			t.Memory(image.SRAM).Usable += 64 << 10
			s.Target = &t
			return true
		}},
		config("a ReLU gate, silent neurons skipped", func(c *configs.Config) bool {
			if c.Activation == configs.ReLU {
				return false
			}
			c.Activation = configs.ReLU
			return true
		}),
		config("per-layer embeddings half as wide", func(c *configs.Config) bool {
			c.PLEDim /= 2
			return c.PLEDim > 0
		}),
		config("half the vocabulary", func(c *configs.Config) bool {
			c.VocabSize /= 2
			return c.VocabSize >= 512
		}),
		config("half the neurons", func(c *configs.Config) bool {
			c.DFF /= 2
			return c.DFF > 0
		}),
		config("2 bits in the output layer", func(c *configs.Config) bool {
			class := configs.ClassHead
			if c.TieEmbeddings {
				class = configs.ClassEmbedding
			}
			return requantise(c, class, 2, -1, "")
		}),
		config("2 bits in every product", func(c *configs.Config) bool {
			a := requantise(c, configs.ClassTrunk, 2, -1, "")
			class := configs.ClassHead
			if c.TieEmbeddings {
				class = configs.ClassEmbedding
			}
			return requantise(c, class, 2, -1, "") || a
		}),
		config("groups of 128", func(c *configs.Config) bool { return groups(c, 128) }),
		config("a scale a row", func(c *configs.Config) bool { return groups(c, 0) }),
		config("16-bit scales", func(c *configs.Config) bool {
			any := false
			for _, class := range classesOf(c) {
				any = requantise(c, class, -1, -1, configs.ScaleF16) || any
			}
			return any
		}),
	}
}

// withoutHead forgets what was measured of a search that was not made.
func withoutHead(m *placement.Measured) *placement.Measured {
	if m == nil || m.Head != nil {
		return m
	}
	return nil
}

func classesOf(c *configs.Config) []configs.TensorClass {
	all := []configs.TensorClass{configs.ClassTrunk, configs.ClassEmbedding, configs.ClassPLETable}
	if c.NgramRows > 0 {
		all = append(all, configs.ClassNgramTable)
	}
	if !c.TieEmbeddings {
		all = append(all, configs.ClassHead)
	}
	return all
}

func groups(c *configs.Config, columns int) bool {
	any := false
	for _, class := range classesOf(c) {
		any = requantise(c, class, -1, columns, "") || any
	}
	return any
}

// requantise changes a class of tensors to fewer bits or scales; it reports whether that changes anything.
func requantise(c *configs.Config, class configs.TensorClass, bits, group int, scale configs.ScaleType) bool {
	was := c.WeightQuant(class)
	if was.Bits == 32 {
		return false
	}
	q := was
	if bits > 0 && bits < q.Bits {
		q.Bits = bits
	}
	if group >= 0 && q.Group > 0 && (group == 0 || group > q.Group) {
		q.Group = group
	}
	if scale != "" {
		q.Scale = scale
	}
	if q == was {
		return false
	}
	if c.Quant.Classes == nil {
		c.Quant.Classes = map[configs.TensorClass]configs.ClassRule{}
	}
	c.Quant.Classes[class] = configs.ClassRule{Bits: &q.Bits, Group: &q.Group, Scale: &q.Scale}
	return true
}

// WhatIfs tries every change that applies, and one tensor more in SRAM, and ranks them by what a token gains. Changes that
// do not fit the chip are left out.
func (s *Subject) WhatIfs(l *placement.Layout) ([]WhatIf, error) {
	var out []WhatIf
	for _, v := range variants() {
		changed := *s
		if !v.apply(&changed) {
			continue
		}
		changed.Measured = rescaled(changed.Measured, s.Config, changed.Config, s.Profile)
		n, err := changed.plan(l.Cost.From, l.Cost.To)
		if errors.Is(err, placement.ErrFit) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		out = append(out, WhatIf{v.name, n.Cost.MeanMs, l.Cost.MeanMs - n.Cost.MeanMs, v.quality})
	}
	if w := s.oneMore(l); w != nil {
		out = append(out, *w)
	}
	slices.SortStableFunc(out, func(a, b WhatIf) int { return cmp.Compare(b.GainedMs, a.GainedMs) })
	return out, nil
}

// rescaled takes what was measured of one model as shares of another's sizes. Neurons of a gate that was not ReLU are assumed.
func rescaled(m *placement.Measured, was, now *configs.Config, p *targets.Profile) *placement.Measured {
	if m == nil {
		return nil
	}
	out := *m
	if m.Head != nil && was.VocabSize != now.VocabSize {
		times := float64(now.VocabSize) / float64(was.VocabSize)
		h := *m.Head
		h.Rows *= times
		h.Blocks[0] *= times
		h.Blocks[1] *= times
		out.Head = &h
	}
	switch {
	case now.Activation != configs.ReLU:
	case m.Neurons == nil:
		if assumed := placement.Assume(now, p); assumed != nil {
			out.Neurons = assumed.Neurons
			out.Tokens = assumed.Tokens
		}
	case was.DFF != now.DFF:
		times := float64(now.DFF) / float64(was.DFF)
		out.Neurons = slices.Clone(m.Neurons)
		for l := range out.Neurons {
			n := &out.Neurons[l]
			for _, count := range []*int64{&n.Up, &n.Down, &n.Groups} {
				*count = int64(float64(*count)*times + 0.5)
			}
		}
	}
	return &out
}

// oneMore finds the tensor outside SRAM that would gain most for its bytes if it lay there.
func (s *Subject) oneMore(l *placement.Layout) *WhatIf {
	var best *WhatIf
	most := 0.0
	for i, t := range l.Tensors {
		if t.Tier == image.SRAM {
			continue
		}
		moved := *l
		moved.Tensors = slices.Clone(l.Tensors)
		moved.Tensors[i].Tier = image.SRAM
		c := moved.Estimate(s.Config, s.Target, s.Profile, l.Cost.From, l.Cost.To)
		gained := l.Cost.MeanMs - c.MeanMs
		if per := gained / float64(t.Bytes); per > most {
			most = per
			best = &WhatIf{fmt.Sprintf("%s in SRAM, for %s bytes", t.Name, digits.Comma(t.Bytes)), c.MeanMs, gained, false}
		}
	}
	return best
}
