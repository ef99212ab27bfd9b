package cost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/export/targets"
)

// Subject is a model whose cost is asked for, on a chip, by an engine. Its methods change nothing.
type Subject struct {
	Source  string // what was named
	Taken   string // lines of notes on which of two models of one name that is
	Config  *configs.Config
	Target  *targets.Target
	Profile *targets.Profile

	// Measured is what the model's own text reads; nil: it is assumed, by the profile.
	Measured *placement.Measured
	From     string // where Measured comes from, for users
	FullHead bool   // the output layer is read in full
	Searched bool   // it is searched, whatever the engine on the chip would do
	Dense    bool   // every neuron is read

	// What is known of buffers and image beyond the estimates from the configuration, in bytes.
	extra      placement.Buffers
	extraImage int64
}

// Find makes a subject of what a user named: a model file (it ends in .yaml), an image or the folder of an export, a
// checkpoint, a run or its name, a released model, or the name of a model file that is built in. sets override keys of the
// configuration, after which nothing is measured any more.
func Find(ctx context.Context, root, name string, sets []string, chip *targets.Target, profile *targets.Profile) (*Subject, error) {
	s := &Subject{Source: name, Target: chip, Profile: profile}
	if e := filepath.Ext(name); e == ".yaml" || e == ".yml" {
		return s, s.fromConfig(name, sets)
	}
	if at := export.ImageAt(name); name != "" && filepath.Ext(at) == ".clm" {
		return s, s.fromImage(at, sets)
	}
	var notes strings.Builder
	found, err := released.Find(ctx, root, name, &notes)
	s.Taken = notes.String()
	if name != "" && errors.Is(err, fs.ErrNotExist) && slices.Contains(configs.Builtin(), name+".yaml") {
		return s, s.fromConfig(name, sets)
	}
	if err != nil {
		return nil, err
	}
	if m := found.Model; m != nil {
		return s, s.fromReleased(ctx, m, sets)
	}
	return s, s.fromCheckpoint(ctx, found.Path, sets)
}

func (s *Subject) fromConfig(name string, sets []string) (err error) {
	s.Config, err = configs.Load(name, sets...)
	return err
}

// override applies sets to a configuration that was stored; it reports whether there were any.
func (s *Subject) override(text string, sets []string) (changed bool, err error) {
	s.Config, err = configs.Parse(s.Source, []byte(text), sets...)
	return len(sets) > 0, err
}

func (s *Subject) fromImage(path string, sets []string) error {
	f, err := image.Open(path)
	if err != nil {
		return err
	}
	changed, err := s.override(string(f.Config), sets)
	if err != nil || changed {
		return err
	}
	s.FullHead = f.Sizes.Clusters == 0
	plan, err := os.ReadFile(filepath.Join(filepath.Dir(path), export.PlacementJSON))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // an image alone: reads are assumed
	}
	if err != nil {
		return fmt.Errorf("the plan of the export: %w", err)
	}
	var l placement.Layout
	if err := json.Unmarshal(plan, &l); err != nil {
		return fmt.Errorf("%s: %w: export again", filepath.Join(filepath.Dir(path), export.PlacementJSON), err)
	}
	if l.Measured != nil && l.Measured.Neurons != nil && len(l.Measured.Neurons) != s.Config.NLayers {
		return fmt.Errorf("%s is the plan of another model: it has %d layers, the image %d: export again",
			filepath.Join(filepath.Dir(path), export.PlacementJSON), len(l.Measured.Neurons), s.Config.NLayers)
	}
	s.Measured, s.From = l.Measured, export.PlacementJSON+" beside the image"
	return s.known(l.Buffers, f.Bytes)
}

func (s *Subject) fromCheckpoint(ctx context.Context, path string, sets []string) error {
	ck, err := checkpoints.LoadModel(path)
	if err != nil {
		return err
	}
	s.Source = path
	text, err := ck.Config.YAML()
	if err != nil {
		return err
	}
	return s.fromWeights(text, sets, fromCheckpoint, func(opt export.Options) (*export.Built, error) {
		return export.BuildImage(ctx, ck, opt)
	})
}

func (s *Subject) fromReleased(ctx context.Context, m *released.Model, sets []string) error {
	s.Source = m.Source
	return s.fromWeights(m.Config, sets, fromReleased, func(opt export.Options) (*export.Built, error) {
		return export.BuildReleased(ctx, m, opt)
	})
}

// fromWeights measures a model that has its weights; config is its configuration.
func (s *Subject) fromWeights(config []byte, sets []string, from string, build func(export.Options) (*export.Built, error)) error {
	if changed, err := s.override(string(config), sets); err != nil || changed {
		return err
	}
	b, err := build(Options(s.Target))
	if err != nil {
		return err
	}
	return s.fromBuilt(b, from)
}

// Options are those of an export that [Of] can make a subject of.
func Options(chip *targets.Target) export.Options {
	return export.Options{Target: chip, Clusters: export.AutoClusters, Measure: true}
}

// Of makes the subject that [Find] makes of a checkpoint or a released model, of what was built of it with [Options].
func Of(from *export.Source, b *export.Built, profile *targets.Profile) (*Subject, error) {
	s := &Subject{Source: from.Path, Config: b.Config, Target: b.Target, Profile: profile}
	what := fromCheckpoint
	if from.Released != nil {
		what = fromReleased
	}
	return s, s.fromBuilt(b, what)
}

// What an estimate of a model that was just built rests on.
const (
	fromCheckpoint = "the checkpoint just now"
	fromReleased   = "the released model just now"
)

func (s *Subject) fromBuilt(b *export.Built, from string) error {
	s.Measured, s.From = b.Measured, from
	s.FullHead = b.Measured == nil || b.Measured.Head == nil
	return s.known(b.Layout.Buffers, int64(len(b.Bytes)))
}

// known notes by how much buffers and image differ from what is estimated.
func (s *Subject) known(b placement.Buffers, imageBytes int64) error {
	e := placement.EstimateBuffers(s.Config, s.Target.Buffers.Batch)
	s.extra = placement.Buffers{Arena: b.Arena - e.Arena, Cache: b.Cache - e.Cache, Logits: b.Logits - e.Logits}
	s.extraImage = imageBytes - imageSize(s.Config, s.reads())
	return nil
}

// tokenizerBytes is about what tokenizer, golden and headers take in an image, for each entry of the vocabulary.
const tokenizerBytes = 24

// imageSize estimates the bytes of an image.
func imageSize(c *configs.Config, m *placement.Measured) int64 {
	n := int64(c.VocabSize) * tokenizerBytes
	for _, i := range placement.Items(c, m) {
		n += i.Bytes
	}
	return n
}

// reads is what a token reads of what it need not read whole: as measured where it was, else as the profile assumes. How an
// engine searches the output layer is the profile's: a measured search tells nothing of another way.
func (s *Subject) reads() *placement.Measured {
	m := placement.Assume(s.Config, s.Profile)
	if s.Measured != nil {
		assumed := m
		known := *s.Measured
		m = &known
		if s.Profile.Reads.Search != targets.SearchBounds && assumed != nil && assumed.Head != nil {
			m.Head = assumed.Head
		}
	}
	if m == nil {
		return nil
	}
	out := *m
	if s.FullHead {
		out.Head = nil
	} else if s.Searched && out.Head != nil {
		h := *out.Head
		h.Idle = false
		out.Head = &h
	}
	if s.Dense || s.Config.Activation != configs.ReLU {
		out.Neurons = nil
	}
	if out.Head != nil && !s.room(&out) {
		out.Head = nil
	}
	if out.Head == nil && out.Neurons == nil {
		return nil
	}
	return &out
}

// room says whether the flash partition holds what the search of the output layer reads. Where it does not, exports and
// imports leave the search out, and so do estimates; but what was measured is there.
func (s *Subject) room(m *placement.Measured) bool {
	f := s.Target.Flash
	return s.Measured != nil || f == nil || imageSize(s.Config, m)+s.extraImage <= f.ModelBytes
}

// notes say what the plan leaves out, and that a model of floats is for training alone.
func (s *Subject) notes() []string {
	var notes []string
	if s.floats() {
		notes = append(notes, "weights or activations in float are for training and scoring: this model cannot be exported")
	}
	m := placement.Assume(s.Config, s.Profile)
	if s.FullHead || m == nil || m.Head == nil || s.room(m) {
		return notes
	}
	whole := *m
	whole.Head = nil
	return append(notes, fmt.Sprintf("the head is read whole: what a search of it needs takes %s bytes, which the flash partition does not have",
		digits.Comma(imageSize(s.Config, m)-imageSize(s.Config, &whole))))
}

// floats says whether what the engine has only in integers is float.
func (s *Subject) floats() bool {
	return s.Config.Quant.Activations.Bits == 32 || slices.ContainsFunc(s.Config.Tensors(), func(t configs.Tensor) bool {
		return t.Quant.Bits == 32 && t.Class != configs.ClassNorm && t.Class != configs.ClassRouter
	})
}

// plan places the model and estimates it over a range of positions.
func (s *Subject) plan(from, to int) (*placement.Layout, error) {
	m := s.reads()
	b := placement.EstimateBuffers(s.Config, s.Target.Buffers.Batch)
	b.Arena = max(b.Arena+s.extra.Arena, 0)
	b.Cache = max(b.Cache+s.extra.Cache, 0)
	b.Logits = max(b.Logits+s.extra.Logits, 0)
	l, err := placement.Plan(s.Config, s.Target, b, max(imageSize(s.Config, m)+s.extraImage, 0), m)
	if err != nil {
		return nil, err
	}
	l.Cost = l.Estimate(s.Config, s.Target, s.Profile, from, to)
	return l, nil
}

// Assume replaces the assumed share of neurons that speak, or of the output layer's rows that are read; nil leaves it. A
// share that would change nothing is refused. The error is one of usage.
func (s *Subject) Assume(neurons, rows *float64) error {
	p := *s.Profile
	for _, a := range []struct {
		flag  string
		share *float64
		to    *targets.Figure
	}{{"neurons", neurons, &p.Reads.Neurons}, {"head-rows", rows, &p.Reads.Rows}} {
		switch m := placement.Assume(s.Config, s.Profile); {
		case a.share == nil:
		case !(*a.share >= 0 && *a.share <= 1):
			return usage.Errorf("--%s %v: a share between 0 and 1", a.flag, *a.share)
		case s.Measured != nil:
			return usage.Errorf("--%s: %s was measured, nothing is assumed: give a model file", a.flag, s.Source)
		case a.flag == "neurons" && (m == nil || m.Neurons == nil):
			return usage.Errorf("--neurons: %s has no ReLU gate, every neuron is read", s.Source)
		case a.flag == "head-rows" && (s.FullHead || m == nil || m.Head == nil):
			return usage.Errorf("--head-rows: the output layer of %s is not searched, all of it is read", s.Source)
		default:
			s.Searched = s.Searched || a.flag == "head-rows"
			*a.to = targets.Figure{Value: *a.share, Kind: "estimate", Source: "--" + a.flag}
		}
	}
	s.Profile = &p
	return nil
}

// describe says what the head and the neurons are taken to read, and of each whether that was measured.
func (s *Subject) describe(l *placement.Layout) string {
	m := l.Measured
	if m == nil {
		return l.Assumed() + " (nothing is assumed)"
	}
	how := func(assumed bool) string {
		if assumed {
			return " (assumed, not measured)"
		}
		return " (measured on text that the model wrote: " + s.From + ")"
	}
	head, neurons := "", ""
	if m.Head != nil && !m.Head.Idle {
		head = how(m.Assumed || s.Profile.Reads.Search != targets.SearchBounds)
	}
	if m.Neurons != nil {
		neurons = how(m.Assumed)
	}
	switch {
	case head == "" && neurons == "":
		neurons = " (nothing is assumed)"
	case head == neurons:
		head = "" // said once, of both
	}
	return m.HeadRead() + head + " and " + m.NeuronsRead() + neurons
}
