// Package tinymodel exports models of random weights, small enough for a test, with the tokenizer of a sentence.
package tinymodel

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/parts"
	"github.com/chiplm/chiplm/export/targets"
)

const config = `name: tiny
vocab_size: 270
d_model: 32
n_layers: 1
n_heads: 2
d_ff: 32
context_length: 32
ple_dim: 4
tie_embeddings: true
activation: relu
quant: {weights: {bits: 4, group: 32, scale: f32}}
train: {batch_tokens: 64, micro_batch: 2}
`

// Export writes an export of a model and gives its folder. sets change its configuration, as --set does; fw is carried
// along unless it is nil.
func Export(t testing.TB, target string, fw *parts.Firmware, sets ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := write(dir, target, fw, sets); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Image is the image of an export for the chip.
func Image(t testing.TB, sets ...string) string {
	t.Helper()
	return filepath.Join(Export(t, "esp32s3", nil, sets...), export.ImageFile)
}

// Run saves a model as a run of a training and gives its folder.
func Run(t testing.TB, sets ...string) string {
	t.Helper()
	ck, err := checkpoint(sets)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tiny-run")
	if _, err := checkpoints.Save(dir, ck, 1); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Release writes a model as a released one, called tiny, and gives its folder.
func Release(t testing.TB, sets ...string) string {
	t.Helper()
	ck, err := checkpoint(sets)
	if err != nil {
		t.Fatal(err)
	}
	b, err := export.BuildImage(t.Context(), ck, export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tiny")
	if _, err := export.Release(t.Context(), dir, ck, b, released.Facts{Name: "tiny"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(dir, target string, fw *parts.Firmware, sets []string) error {
	ck, err := checkpoint(sets)
	if err != nil {
		return err
	}
	chip, err := targets.Load(target)
	if err != nil {
		return err
	}
	b, err := export.BuildImage(context.Background(), ck, export.Options{Target: chip})
	if err != nil {
		return err
	}
	b.Firmware = fw
	_, err = export.Write(context.Background(), dir, ck, b)
	return err
}

func checkpoint(sets []string) (*checkpoints.Checkpoint, error) {
	c, err := configs.Parse("tiny.yaml", []byte(config), sets...)
	if err != nil {
		return nil, err
	}
	tok, err := bpe.Train(context.Background(), func(yield func([]byte) error) error {
		return yield([]byte("Once upon a time there was a little girl. The little girl was once in the park."))
	}, 268)
	if err != nil {
		return nil, err
	}
	w := arch.InitWeights(c, 1)
	rng := rand.New(rand.NewPCG(2, 3))
	ck := &checkpoints.Checkpoint{Config: c, Tokenizer: tok.JSON(), Tensors: map[string][]float32{}}
	sum := sha256.New()
	for i, x := range w.Tensors {
		for j := range w.Data[i] {
			w.Data[i][j] += 0.4 * (rng.Float32() - 0.5) // the zeros that training starts from would hide faults
		}
		ck.Tensors[x.Name] = w.Data[i]
		if err := binary.Write(sum, binary.LittleEndian, w.Data[i]); err != nil {
			return nil, err
		}
	}
	ck.ModelSHA256 = hex.EncodeToString(sum.Sum(nil)) // models that differ have hashes that do
	return ck, nil
}
