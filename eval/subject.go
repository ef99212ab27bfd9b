package eval

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
)

// subject is a model to be scored or to write: an image in the engine, and the checkpoint it was made from unless the
// image came from a file.
type subject struct {
	name       string
	path       string
	config     *configs.Config
	tokenizer  *bpe.Tokenizer // nil only from openAny: an image may have none
	image      *engine.Image
	checkpoint *checkpoints.Checkpoint

	imagePath   string // of an image beside its checkpoint, when it was not packed from that just now
	imageSHA256 string // where there is a checkpoint, and of a released model
}

// openSubject opens an image file, a folder that export wrote, a checkpoint or a run, by path or by the name of a run
// under root, or a released model. An empty name is the newest checkpoint of all runs; see [released.Find]. What a person should know about it goes to notes, a
// line each.
func openSubject(ctx context.Context, name, root string, notes io.Writer) (*subject, error) {
	return openWith(ctx, name, root, notes, export.Options{})
}

// openWith is openSubject; a checkpoint is packed as the options say.
func openWith(ctx context.Context, name, root string, notes io.Writer, opt export.Options) (*subject, error) {
	s, err := openAny(ctx, name, root, notes, opt)
	if err != nil {
		return nil, err
	}
	if s.tokenizer == nil {
		return nil, errors.Join(s.noText(), s.close())
	}
	return s, nil
}

// noText is the error for an image without a tokenizer where text is wanted.
func (s *subject) noText() error {
	return fmt.Errorf("%s: %w; import the model again with --tokenizer", s.path, bpe.ErrNone)
}

// openAny is openWith for those who can do without text.
func openAny(ctx context.Context, name, root string, notes io.Writer, opt export.Options) (*subject, error) {
	found, err := released.Find(ctx, root, name, notes)
	if errors.Is(err, fs.ErrNotExist) {
		if missing := export.Exported(name); missing != nil {
			return nil, missing
		}
	}
	if err != nil {
		return nil, err
	}
	if found.Model != nil {
		return openReleased(ctx, found.Model, opt)
	}
	path := export.ImageAt(found.Path)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return openImage(path)
	}
	return openCheckpoint(ctx, path, notes, opt)
}

// openReleased opens a released model: its image as it is, or with clusters if the options ask for them.
func openReleased(ctx context.Context, m *released.Model, opt export.Options) (*subject, error) {
	file := m.Image
	if opt.Clusters != export.NoClusters {
		built, err := export.BuildReleased(ctx, m, opt)
		if err != nil {
			return nil, err
		}
		file = built.Bytes
	}
	im, err := engine.NewImage(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Source, err)
	}
	s, err := imageSubject(m.Source, im)
	if err != nil {
		return nil, err
	}
	s.imageSHA256 = hashOf(file)
	return s, nil
}

func openImage(path string) (*subject, error) {
	im, err := engine.OpenImage(path)
	if err != nil {
		return nil, err
	}
	return imageSubject(path, im)
}

// imageSubject is an image with what it says of itself. When it fails, the image is closed.
func imageSubject(path string, im *engine.Image) (*subject, error) {
	s := &subject{path: path, image: im}
	var err error
	if s.config, err = configs.Parse(path, im.Config()); err == nil {
		s.tokenizer, err = bpe.FromImage(im.Tokenizer())
	}
	if err != nil && !errors.Is(err, bpe.ErrNone) {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), im.Close())
	}
	s.name = s.config.Name
	return s, nil
}

func openCheckpoint(ctx context.Context, path string, notes io.Writer, opt export.Options) (*subject, error) {
	ck, err := checkpoints.LoadModel(path)
	if err != nil {
		return nil, err
	}
	built, err := export.BuildImage(ctx, ck, opt)
	if err != nil {
		return nil, fmt.Errorf("packing %s: %w", ck.Dir, err)
	}
	for _, note := range append(ck.Notes, built.Notes...) {
		fmt.Fprintf(notes, "note: %s\n", note)
	}
	im, err := engine.NewImage(built.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the image of %s: %w", ck.Dir, err)
	}
	return &subject{name: ck.Config.Name, path: ck.Dir, config: ck.Config, tokenizer: built.Tokenizer, image: im, checkpoint: ck,
		imageSHA256: hashOf(built.Bytes)}, nil
}

// hashOf is the SHA-256 of a file's bytes, in hex.
func hashOf(file []byte) string { return fmt.Sprintf("%x", sha256.Sum256(file)) }

func (s *subject) close() error { return s.image.Close() }
