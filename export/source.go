package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/digits"
)

// Source is what can be exported: a checkpoint or a released model.
type Source struct {
	Path     string          // of the checkpoint, or released/NAME
	Name     string          // that people call it by: of the run, or of the released model
	Released *released.Model // nil: a checkpoint
	model    string          // name of the configuration
	origin   Manifest        // what the manifest says of it
	build    func(context.Context, Options) (*Built, error)
}

// OpenSource opens what a user names: see [released.Find]. Notes on it go to notes, a line each.
func OpenSource(ctx context.Context, root, name string, notes io.Writer) (*Source, error) {
	found, err := released.Find(ctx, root, name, notes)
	if errors.Is(err, fs.ErrNotExist) {
		if missing := Exported(name); missing != nil {
			return nil, missing
		}
	}
	if err != nil {
		return nil, err
	}
	if m := found.Model; m != nil {
		return SourceOf(m), nil
	}
	ck, err := checkpoints.LoadModel(found.Path)
	if err != nil {
		return nil, err
	}
	for _, n := range ck.Notes {
		fmt.Fprintf(notes, "note: %s\n", n)
	}
	return &Source{ck.Dir, checkpoints.RunName(ck.Dir), nil, ck.Config.Name, originOf(ck),
		func(ctx context.Context, opt Options) (*Built, error) { return BuildImage(ctx, ck, opt) }}, nil
}

// SourceOf is a released model as a source.
func SourceOf(m *released.Model) *Source {
	return &Source{m.Source, m.Name, m, m.Name,
		Manifest{Run: released.Prefix + m.Name, Step: m.Training.Steps, Tokens: m.Training.Tokens, ModelHash: m.ModelSHA256,
			CorpusHash: m.Text.SHA256, TokenizerHash: m.TokenizerSHA256},
		func(ctx context.Context, opt Options) (*Built, error) { return BuildReleased(ctx, m, opt) }}
}

// Build makes the image, as [BuildImage] or [BuildReleased] does.
func (s *Source) Build(ctx context.Context, opt Options) (*Built, error) { return s.build(ctx, opt) }

// Write puts an export folder of what [Source.Build] made at dir, as [Write] does.
func (s *Source) Write(ctx context.Context, dir string, b *Built) (*Manifest, error) {
	return write(ctx, dir, b, s.origin)
}

// TellCheckpoint notes which checkpoint was taken where a run was named, which may still be in training.
func (s *Source) TellCheckpoint(name string, notes io.Writer) {
	if s.Released == nil && filepath.Base(filepath.Clean(name)) != filepath.Base(s.Path) {
		fmt.Fprintf(notes, "note: %s: its newest checkpoint, of step %s (%s)\n", s.Name, digits.Comma(s.origin.Step), s.Path)
	}
}
