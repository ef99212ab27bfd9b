package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The parts of a split corpus, as they stand at the end of a path.
const (
	partTrain   = "#train"
	partHeldOut = "#held-out"
)

// heldOutOf is how many stories share one held-out story: the second of every fifty, so that a corpus of two stories
// has both parts.
const (
	heldOutOf = 50
	heldOutAt = 1
)

// part is one side of a split.
type part struct {
	whole   Corpus
	heldOut bool
}

// Split divides a corpus without a held-out file of its own: stories 2, 52, 102 and so on are held out, all others are
// for training. It gives one of the two parts. The path in its Info, which ends in "#train" or "#held-out", opens the
// part again.
func Split(c Corpus, heldOut bool) Corpus { return &part{c, heldOut} }

// Whole gives the path of the corpus that [Split] divided, where a path, as Info has it, is that of a part.
func Whole(path string) (whole string, ok bool) {
	for _, part := range []string{partTrain, partHeldOut} {
		if whole, ok := strings.CutSuffix(path, part); ok {
			if _, err := os.Stat(path); err != nil { // a file may be called so
				return whole, true
			}
		}
	}
	return "", false
}

// Info implements [Corpus].
func (p *part) Info() Info {
	info := p.whole.Info()
	name := partTrain
	if p.heldOut {
		name = partHeldOut
	}
	info.Path += name
	info.Name += name
	sum := sha256.Sum256([]byte(info.SHA256 + name))
	info.SHA256 = hex.EncodeToString(sum[:])
	return info
}

// Stories implements [Corpus].
func (p *part) Stories(ctx context.Context, yield func(story []byte) error) error {
	i, found := 0, false
	err := p.whole.Stories(ctx, func(story []byte) error {
		mine := (i%heldOutOf == heldOutAt) == p.heldOut
		i++
		if !mine {
			return nil
		}
		found = true
		return yield(story)
	})
	if err == nil && !found && i > 0 {
		return fmt.Errorf("corpus %s %w: the whole has too few stories to hold one out", p.Info().Path, ErrNoStories)
	}
	return err
}

// HeldOutPath finds the file of held-out stories beside a training file: the same name with "valid", "validation" or
// "val" in place of its last "train". It is empty when there is none.
func HeldOutPath(path string) string {
	dir, name := filepath.Split(path)
	for _, form := range []struct {
		train  string
		others []string
	}{
		{"train", []string{"valid", "validation", "val"}},
		{"Train", []string{"Valid", "Validation", "Val"}},
		{"TRAIN", []string{"VALID", "VALIDATION", "VAL"}},
	} {
		i := strings.LastIndex(name, form.train)
		if i < 0 {
			continue
		}
		for _, other := range form.others {
			beside := filepath.Join(dir, name[:i]+other+name[i+len(form.train):])
			if stat, err := os.Stat(beside); err == nil && stat.Mode().IsRegular() {
				return beside
			}
		}
	}
	return ""
}

// WithHeldOut gives the corpus to train on and the one held out from it: the file found by [HeldOutPath] where there is
// one, and both parts of [Split] where there is none.
func WithHeldOut(ctx context.Context, c Corpus) (train, heldOut Corpus, err error) {
	if f, ok := c.(*file); ok {
		if beside := HeldOutPath(f.info.Path); beside != "" {
			heldOut, err = OpenContext(ctx, beside)
			if err == nil && heldOut.Info().SHA256 == f.info.SHA256 {
				err = errors.New("holds the same bytes as the training corpus: replace it")
			}
			if err != nil {
				return nil, nil, fmt.Errorf("held-out corpus %s: %w", beside, err)
			}
			return c, heldOut, nil
		}
	}
	return Split(c, false), Split(c, true), nil
}
