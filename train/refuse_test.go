package train

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
)

func refused(t *testing.T, o Options, wants ...string) {
	t.Helper()
	_, err := Run(t.Context(), o, io.Discard, true)
	if err == nil {
		t.Errorf("%+v is not refused", o)
		return
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestNewRunRefusals(t *testing.T) {
	o := tinyOptions(t, "train.tokens=256")
	change := func(f func(*Options)) Options {
		c := o
		f(&c)
		return c
	}
	refused(t, change(func(o *Options) { o.Config = "nowhere.yaml" }), "nowhere.yaml")
	refused(t, change(func(o *Options) { o.Sets = []string{"train.lrr=1"} }), "train.lrr", "train.lr")
	refused(t, change(func(o *Options) { o.Corpus = "nowhere.txt" }), "nowhere.txt")
	refused(t, change(func(o *Options) { o.Valid = "nowhere.txt" }), "nowhere.txt")
	refused(t, change(func(o *Options) { o.Valid = tinyCorpus }), "--valid", "same stories")
	refused(t, change(func(o *Options) { o.Tokenizer = o.Config }), "tiny.yaml")
	refused(t, change(func(o *Options) { o.Workers = -1 }), "--workers")
	refused(t, change(func(o *Options) { o.Sets = []string{"vocab_size=100000"} }), "too little text", "vocab_size")
	for _, name := range []string{"../x", "a/b", ".", "..", ".hidden", "-x", "two words"} {
		refused(t, change(func(o *Options) { o.Name = name }), "--name")
	}
	tok := trainTiny(t, 280)
	refused(t, change(func(o *Options) { o.Tokenizer = tok }), tok, "280", "vocab_size is 300")

	refused(t, change(func(o *Options) { o.Resume = true }), "--resume", "no complete checkpoint")
	refused(t, change(func(o *Options) { o.Resume, o.Run = true, "elsewhere" }), "elsewhere", "without --resume")
	for _, dir := range []string{"tiny", "x"} {
		if newest, err := checkpoints.Newest(filepath.Join(o.Out, dir)); !errors.Is(err, checkpoints.ErrNone) {
			t.Errorf("a refused run left %s (%v)", newest, err)
		}
	}

	lock, err := checkpoints.Lock(filepath.Join(o.Out, "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, o, "in use", "--name")
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	sum := mustRun(t, o)
	refused(t, o, sum.Run, "--resume "+sum.Run, "--name")
	refused(t, Options{Out: o.Out, Resume: true, Run: sum.Checkpoint}, "one checkpoint", "--resume "+sum.Run)
}

// trainTiny leaves a tokenizer of the tiny corpus in a file.
func trainTiny(t *testing.T, size int) string {
	t.Helper()
	c, err := data.Open("builtin:2:60")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := bpe.Train(t.Context(), func(yield func([]byte) error) error { return c.Stories(t.Context(), yield) }, size)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), fmt.Sprintf("tokenizer-%d.json", size))
	if err := tok.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeStories leaves stories in a file for training.
func writeStories(t *testing.T, path string, seed uint64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := data.WriteDelimited(t.Context(), f, data.Builtin(seed, 60)); err != nil {
		t.Fatal(err)
	}
}

func TestResumeRefusesWhatChanged(t *testing.T) {
	o := tinyOptions(t)
	folder := t.TempDir()
	o.Corpus = filepath.Join(folder, "stories.txt")
	writeStories(t, o.Corpus, 1)
	stopped, _ := runUntil(t, o, "valid step=4 ")
	if stopped.Step != 4 {
		t.Fatal(stopped)
	}
	resume := Options{Out: o.Out, Resume: true, Run: "tiny"}
	with := func(f func(*Options)) Options {
		c := resume
		f(&c)
		return c
	}
	other, tok := filepath.Join(folder, "other.txt"), trainTiny(t, 300)
	writeStories(t, other, 2)
	refused(t, with(func(o *Options) { o.Sets = []string{"train.lr=0.5", "train.beta2=0.9", "train.save_every=1"} }),
		"train.lr was 0.01 and is now 0.5", "train.beta2", "--force", "--name")
	refused(t, with(func(o *Options) { o.Sets = []string{"quant.classes.embedding.bits=8"} }), "quant.classes.embedding.bits", "not set")
	refused(t, with(func(o *Options) { o.Corpus = other }), "the corpus "+other, o.Corpus)
	refused(t, with(func(o *Options) { o.Valid = other }), "the held-out text "+other)
	refused(t, with(func(o *Options) { o.Tokenizer = tok }), "the tokenizer "+tok)
	refused(t, with(func(o *Options) { o.Sets = []string{"d_model=32"}; o.Force = true }), "another model")

	// The same text elsewhere is the same corpus, and what does not decide the weights may change.
	moved := filepath.Join(folder, "moved.txt")
	if err := os.Rename(o.Corpus, moved); err != nil {
		t.Fatal(err)
	}
	refused(t, resume, o.Corpus, "--corpus")
	runUntil(t, with(func(o *Options) {
		o.Corpus, o.Sets = moved, []string{"train.save_every=1", "train.valid_every=1"}
	}), "valid step=5 ")
	refused(t, with(func(o *Options) { o.Sets = []string{"train.lr=0.5"} }), "train.lr") // the corpus is known by its new place
	writeStories(t, moved, 3)
	refused(t, resume, "the corpus "+moved, "the held-out text "+moved)

	sum := mustRun(t, with(func(o *Options) { o.Force, o.Sets = true, []string{"train.lr=0.02"} }))
	if sum.Step != 12 || sum.CorpusHash == "" {
		t.Errorf("forced: %+v", sum)
	}
}
