package data

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestSplitParts(t *testing.T) {
	whole := Builtin(4, 230)
	stories := collect(t, whole)
	train, heldOut := collect(t, Split(whole, false)), collect(t, Split(whole, true))
	if want := []string{stories[1], stories[51], stories[101], stories[151], stories[201]}; !reflect.DeepEqual(heldOut, want) {
		t.Errorf("%d stories are held out, not the second of every fifty", len(heldOut))
	}
	if len(train)+len(heldOut) != len(stories) || train[0] != stories[0] || train[1] != stories[2] {
		t.Errorf("%d stories to train on and %d held out, of %d", len(train), len(heldOut), len(stories))
	}
	seen := map[string]bool{}
	for _, c := range []Corpus{whole, Split(whole, false), Split(whole, true)} {
		info := c.Info()
		if seen[info.SHA256] || len(info.SHA256) != 64 {
			t.Errorf("%s has the hash %q", info.Path, info.SHA256)
		}
		seen[info.SHA256] = true
	}
}

func TestSplitOfAFileOpensAgain(t *testing.T) {
	path := write(t, "c.txt", "One.\n\nTwo.\n\nThree.")
	for _, part := range []string{"#train", "#held-out"} {
		c, err := Open(path + part)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Open(c.Info().Path)
		if err != nil || again.Info() != c.Info() || !reflect.DeepEqual(collect(t, c), collect(t, again)) {
			t.Errorf("%s does not open again as itself: %v", c.Info().Path, err)
		}
	}
	if err := os.WriteFile(path+"#train", []byte("Own."), 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err := Open(path + "#train"); err != nil || c.Info().Kind != KindText || collect(t, c)[0] != "Own." {
		t.Errorf("a file whose name ends in #train is not opened as itself: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "no#train")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("part of a missing file: error %v", err)
	}
}

func TestSplitOfOneStory(t *testing.T) {
	c := Builtin(1, 1)
	if got := collect(t, Split(c, false)); len(got) != 1 {
		t.Errorf("%d stories to train on", len(got))
	}
	err := Split(c, true).Stories(context.Background(), func([]byte) error { return nil })
	if !errors.Is(err, ErrNoStories) || !strings.Contains(err.Error(), "too few") {
		t.Errorf("error %v", err)
	}
}

func TestHeldOutBeside(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tinystories-train.txt", "tinystories-valid.txt", "TinyStoriesV2-GPT4-train.txt",
		"TinyStoriesV2-GPT4-valid.txt", "my-train.jsonl", "my-val.jsonl", "train-of-train.txt", "train-of-validation.txt",
		"Training.txt", "Validing.txt", "alone-train.txt", "plain.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("A story in "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "alone-valid.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"tinystories-train.txt":        "tinystories-valid.txt",
		"TinyStoriesV2-GPT4-train.txt": "TinyStoriesV2-GPT4-valid.txt",
		"my-train.jsonl":               "my-val.jsonl",
		"train-of-train.txt":           "train-of-validation.txt",
		"Training.txt":                 "Validing.txt",
		"alone-train.txt":              "",
		"plain.txt":                    "",
	} {
		got := HeldOutPath(filepath.Join(dir, name))
		if want != "" {
			want = filepath.Join(dir, want)
		}
		if got != want {
			t.Errorf("beside %s: %q, want %q", name, got, want)
		}
	}

	c, err := Open(filepath.Join(dir, "tinystories-train.txt"))
	if err != nil {
		t.Fatal(err)
	}
	train, heldOut, err := WithHeldOut(context.Background(), c)
	if err != nil || train != c || heldOut.Info().Name != "tinystories-valid.txt" {
		t.Errorf("held-out file: %v", err)
	}
	c, err = Open(filepath.Join(dir, "plain.txt"))
	if err != nil {
		t.Fatal(err)
	}
	train, heldOut, err = WithHeldOut(context.Background(), c)
	if err != nil || train.Info().Name != "plain.txt#train" || heldOut.Info().Name != "plain.txt#held-out" {
		t.Errorf("no held-out file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tinystories-valid.txt"), []byte("A story in tinystories-train.txt"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err = Open(filepath.Join(dir, "tinystories-train.txt")); err != nil {
		t.Fatal(err)
	}
	if _, _, err = WithHeldOut(context.Background(), c); err == nil || !strings.Contains(err.Error(), "same bytes") {
		t.Errorf("a copy as held-out file: error %v", err)
	}
}

// Real text, where it is there: numbers of stories and hashes as its publisher's notes give them.
func TestRealText(t *testing.T) {
	dir := os.Getenv("CHIPLM_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "corpus")
	}
	for name, want := range map[string]struct {
		stories int
		sha256  string
	}{
		"tinystories-train.txt": {15928, "dea4f89d5d3b27ca2c303c14d207c6646efe122ea7e51a399abd1a54051ef9a7"},
		"tinystories-valid.txt": {6456, "ece4ffb3491879323d09e165640485e4cd0b172fa031b1442e5d4b064f77946f"},
	} {
		c, err := Open(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			t.Skipf("no %s in %s (set CHIPLM_CORPUS to the folder that has it)", name, dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Info(); got.SHA256 != want.sha256 || got.Kind != KindDelimited {
			t.Errorf("%s: %+v", name, got)
		}
		if got := len(collect(t, c)); got != want.stories {
			t.Errorf("%s: %d stories, want %d", name, got, want.stories)
		}
	}
}
