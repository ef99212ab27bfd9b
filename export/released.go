package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/qat"
)

// ErrReleased is wrapped where the weights of training are wanted, which a released model does not have.
var ErrReleased = errors.New("a released model holds its weights quantised, not as they were trained")

// BuildReleased makes the image of a released model, as [BuildImage] does of a checkpoint. Codes, scales and golden stay as
// they were released, so the options must not ask for another quantisation.
func BuildReleased(ctx context.Context, m *released.Model, opt Options) (*Built, error) {
	if len(opt.Overrides.Bits)+len(opt.Overrides.Group) > 0 {
		return nil, fmt.Errorf("%s: %w: leave out --bits and --group, or train the model: %s has its model card", m.Source, ErrReleased, m.Source)
	}
	b, err := newBuilt(opt)
	if err != nil {
		return nil, err
	}
	f, config, err := openReleased(m)
	if err != nil {
		return nil, err
	}
	b.Config = config
	if b.Tokenizer, err = bpe.FromImage(f.Tokenizer); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Source, err)
	}
	b.Model, b.PostTraining = &f.Model, m.PostTraining
	// Model files may have got keys since the release; the image is written as one of today.
	if b.Model.Config, err = config.YAML(); err != nil {
		return nil, err
	}
	head := func() (*qat.Matrix, error) {
		t := f.Tensor(configs.Head)
		if t == nil {
			t = f.Tensor(configs.TokenEmbedding)
		}
		return matrixOf(t), nil
	}
	if err := b.place(ctx, opt, head); err != nil {
		return nil, err
	}
	return b, nil
}

// openReleased reads the image of a released model, and the configuration in it.
func openReleased(m *released.Model) (*image.File, *configs.Config, error) {
	f, err := image.Read(bytes.NewReader(m.Image), int64(len(m.Image)))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s: %w", m.Source, released.ImageFile, err)
	}
	config, err := configs.Parse(m.Source, f.Config)
	if err != nil {
		return nil, nil, err
	}
	if f.Sizes.Clusters > 0 || !bytes.Equal(f.Config, m.Config) || config.Name != m.Name {
		return nil, nil, fmt.Errorf("%s: %w: %s has clusters, or is that of another configuration or name", m.Source, released.ErrDamaged, released.ImageFile)
	}
	return f, config, nil
}

// matrixOf takes codes and scales of a tensor out of an image.
func matrixOf(t *image.Tensor) *qat.Matrix {
	m := &qat.Matrix{Spec: qat.Spec{Bits: t.Bits, Group: t.Group, Scale: configs.ScaleF32}, Rows: t.Rows, Cols: t.Cols}
	if t.ScaleType == image.ScaleF16 {
		m.Scale = configs.ScaleF16
	}
	for r := range t.Rows {
		for c := range t.Cols {
			m.Codes = append(m.Codes, int8(t.Code(r, c)))
		}
		for g := range t.Groups() {
			m.Scales = append(m.Scales, t.Scale(r, g))
		}
	}
	return m
}

// Trainable is a checkpoint for the training graph made of a released model: with weights that quantise to exactly the
// codes and scales that were released. They are not the weights of training, of which nothing is known but these codes, so
// what the graph computes of them without quantising means nothing.
func Trainable(m *released.Model) (*checkpoints.Checkpoint, error) {
	f, config, err := openReleased(m)
	if err != nil {
		return nil, err
	}
	ck := &checkpoints.Checkpoint{Dir: m.Source, Config: config, Tokenizer: m.Tokenizer, ModelSHA256: m.ModelSHA256, Tensors: map[string][]float32{}}
	ck.State.Step, ck.State.Tokens = m.Training.Steps, m.Training.Tokens
	ck.State.CorpusHash, ck.State.TokenizerHash = m.Text.SHA256, m.TokenizerSHA256
	clip := map[string]float64{} // which no image needs to know
	for _, t := range config.Tensors() {
		clip[t.Name] = t.Quant.Clip
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		w := make([]float32, t.Rows*t.Cols)
		if t.Bits == 32 {
			for r := range t.Rows {
				t.Row(w[r*t.Cols:], r)
			}
		} else {
			codes := matrixOf(t)
			codes.Clip = clip[t.Name]
			if err := codes.Preimage(w); err != nil {
				return nil, fmt.Errorf("%s: tensor %s: %w", m.Source, t.Name, err)
			}
		}
		ck.Tensors[t.Name] = w
	}
	return ck, nil
}
