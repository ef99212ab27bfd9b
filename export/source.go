package export

import (
	"context"
	"fmt"
	"io"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
)

// source is what is exported: a checkpoint or a released model.
type source struct {
	path, model string
	origin      Manifest // what the manifest says of it
	build       func(context.Context, Options) (*Built, error)
}

// openSource opens what a user names: see [released.Find].
func openSource(ctx context.Context, root, name string, notes io.Writer) (*source, error) {
	found, err := released.Find(ctx, root, name, notes)
	if err != nil {
		return nil, err
	}
	if m := found.Model; m != nil {
		return &source{m.Source, m.Name,
			Manifest{Run: released.Prefix + m.Name, Step: m.Training.Steps, Tokens: m.Training.Tokens, ModelHash: m.ModelSHA256,
				CorpusHash: m.Text.SHA256, TokenizerHash: m.TokenizerSHA256},
			func(ctx context.Context, opt Options) (*Built, error) { return BuildReleased(ctx, m, opt) }}, nil
	}
	ck, err := checkpoints.LoadModel(found.Path)
	if err != nil {
		return nil, err
	}
	for _, n := range ck.Notes {
		fmt.Fprintf(notes, "note: %s\n", n)
	}
	return &source{ck.Dir, ck.Config.Name, originOf(ck),
		func(ctx context.Context, opt Options) (*Built, error) { return BuildImage(ctx, ck, opt) }}, nil
}
