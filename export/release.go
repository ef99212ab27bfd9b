package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/jsonout"
)

// ErrRelease is wrapped when a folder is there that is no released model, so that nothing else is overwritten.
var ErrRelease = errors.New("no released model")

// Release makes a released model of a checkpoint and of the image that [BuildImage] made of it for a host, without
// clusters, and writes it at dir: beside it under a temporary name, read back, then renamed. The caller gives the facts that
// are not in the checkpoint: name, training text, score and sample; the rest is filled in. An older release of the same name
// there is replaced. It fails, and writes nothing, unless the folder alone gives the same image again, and weights for the
// training graph.
func Release(ctx context.Context, dir string, ck *checkpoints.Checkpoint, b *Built, f released.Facts) (*released.Model, error) {
	if err := releasable(dir, f.Name); err != nil {
		return nil, err
	}
	config, err := b.Config.YAML()
	if err != nil {
		return nil, err
	}
	if b.Model.Sizes.Clusters > 0 || b.Target.Name != "host" {
		return nil, errors.New("a release is made of an image for a host, without clusters")
	}
	f.Kind, f.Version = released.Kind, released.Version
	f.Parameters, f.VocabSize, f.ContextLength = b.Config.Parameters(), b.Config.VocabSize, b.Config.ContextLength
	f.Weights, f.ImageBytes, f.BytesPerToken = WeightsText(b.Config), int64(len(b.Bytes)), b.Config.Budget().Total.TokenRead
	f.PostTraining, f.Digest = b.PostTraining, fmt.Sprintf("%016x", b.Model.Golden.Digest)
	f.ModelSHA256, f.ConfigSHA256, f.TokenizerSHA256 = ck.ModelSHA256, released.FileOf(config).SHA256, b.Tokenizer.Hash()
	f.Training = released.Trained{Tokens: ck.State.Tokens, Steps: ck.State.Step, Seed: int64(b.Config.Train.Seed), Program: ck.State.CreatedBy}
	if all := b.Config.Train.Steps(); ck.State.Step < all {
		f.Training.Planned = all
	}
	if ck.State.TeacherHash != "" {
		name := ck.State.Teacher // or of a release by hand, its folder
		if !strings.HasPrefix(name, released.Prefix) {
			name = checkpoints.RunName(name)
		}
		f.Training.Teacher = &released.Teacher{Run: name, ModelSHA256: ck.State.TeacherHash, Share: b.Config.Train.Distill, From: b.Config.Train.DistillStart}
	}
	files := map[string][]byte{released.ImageFile: b.Bytes, released.ConfigFile: config, released.TokenizerFile: ck.Tokenizer}
	f.Files = map[string]released.File{}
	for name, content := range files {
		f.Files[name] = released.FileOf(content)
	}
	files[released.CardFile] = f.Card()
	f.Files[released.CardFile] = released.FileOf(files[released.CardFile])
	var facts bytes.Buffer
	if err := jsonout.Write(&facts, &f); err != nil {
		return nil, err
	}
	files[released.FactsFile] = facts.Bytes()

	var m *released.Model
	err = PutFolder(dir, func(tmp string) error {
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(tmp, name), content, 0o644); err != nil {
				return fmt.Errorf("release: %w", err)
			}
		}
		if m, err = released.OpenFolder(tmp); err != nil {
			return err
		}
		m.Source = dir
		return heldTo(ctx, m, b)
	})
	return m, err
}

// heldTo checks that a released model gives an image again, byte by byte, also by way of the weights for the training graph.
func heldTo(ctx context.Context, m *released.Model, b *Built) error {
	again, err := BuildReleased(ctx, m, Options{Target: b.Target})
	if err != nil {
		return err
	}
	if !bytes.Equal(again.Bytes, b.Bytes) {
		return fmt.Errorf("%s: the released image is not the one that the checkpoint gives: this is a fault of chiplm", m.Name)
	}
	ck, err := Trainable(m)
	if err != nil {
		return err
	}
	if again, err = BuildImage(ctx, ck, Options{Target: b.Target}); err != nil {
		return err
	}
	if !bytes.Equal(again.Bytes, b.Bytes) {
		return fmt.Errorf("%s: the weights made of the released codes give another image: this is a fault of chiplm", m.Name)
	}
	return nil
}

// releasable allows a path that does not exist, an empty folder, and an older release of the name with nothing else in it.
func releasable(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s is %w (%w): choose another folder with --out", dir, ErrRelease, err)
	}
	old, err := released.OpenFolder(dir)
	if err != nil {
		if !released.IsFolder(dir) {
			return fmt.Errorf("%s exists and is %w to replace, but a folder of something else: choose another with --out", dir, ErrRelease)
		}
		return fmt.Errorf("%s exists and is %w to replace (%w): choose another folder with --out, or remove it", dir, ErrRelease, err)
	}
	if old.Name != name {
		return fmt.Errorf("%s is the released model %s, %w %s to replace: choose another folder with --out, or remove it", dir, old.Name, ErrRelease, name)
	}
	for _, e := range entries {
		if _, ours := old.Files[e.Name()]; !ours && e.Name() != released.FactsFile {
			return fmt.Errorf("%s has something more in it (%s), which would be lost; it is %w to replace: move that file, or choose another folder with --out",
				dir, e.Name(), ErrRelease)
		}
	}
	return nil
}

// WeightsText says how the weights of a model are quantised, class by class where they differ.
func WeightsText(c *configs.Config) string {
	var order []string
	classes := map[string][]string{}
	for _, t := range c.Tensors() {
		if t.Quant.Bits == 32 {
			continue // norms and routers
		}
		how := spec(t.Quant)
		if classes[how] == nil {
			order = append(order, how)
		}
		if !slices.Contains(classes[how], string(t.Class)) {
			classes[how] = append(classes[how], string(t.Class))
		}
	}
	if len(order) == 1 {
		return order[0]
	}
	var parts []string
	for _, how := range order {
		parts = append(parts, strings.Join(classes[how], ", ")+": "+how)
	}
	return strings.Join(parts, "; ")
}
