package eval

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/shards"
	"github.com/chiplm/chiplm/train"
)

// The command on a card, with the files of the release and the texts it names beside it, trains the weights of the run again,
// however that was started; and the card of a checkpoint on the way says that it is one.
func TestCardTrainsAgain(t *testing.T) {
	texts := map[string]string{"own.txt": storiesOf("Tom", 60), "held.txt": storiesOf("Anna", 5), "more.txt": storiesOf("Ben", 40), "x-train.txt": storiesOf("Eve", 60), "x-valid.txt": storiesOf("Kim", 5)}
	for name, args := range map[string][]string{
		"the generator":              {"--corpus", "builtin:1:60"},
		"a text by itself":           {"--corpus", "own.txt"},
		"a text and one held out":    {"--corpus", "own.txt", "--valid", "held.txt"},
		"a part of a text":           {"--corpus", "own.txt#train", "--valid", "held.txt"},
		"a text with another beside": {"--corpus", "x-train.txt"},
		"the tokens of another text": {"--corpus", "own.txt", "--tokenizer", "tokens.json"},
		"a teacher of a common name": {"--corpus", "own.txt", "--teacher", "checkpoints/runs/combo", "--set", "train.distill=0.5"},
		"not finished":               {"--corpus", "own.txt", "--set", "train.save_every=2", "--set", "train.keep_last=9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(shards.CacheVariable, t.TempDir())
			from, to := t.TempDir(), t.TempDir()
			for file, text := range texts {
				for _, dir := range []string{from, to} {
					if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
						t.Fatal(err)
					}
				}
			}
			config := strings.Replace(tinyModel, "vocab_size: 300", "name: tiny\nvocab_size: 270", 1)
			config = strings.Replace(config, "tokens: 1000", "tokens: 96", 1)
			if err := os.WriteFile(filepath.Join(from, "tiny.yaml"), []byte(config), 0o666); err != nil {
				t.Fatal(err)
			}
			learn := func(args ...string) *train.Summary {
				t.Helper()
				return learnWith(t, released.Embedded(), args...)
			}
			t.Chdir(from)
			other := learn("--config", "tiny.yaml", "--name", "combo", "--corpus", "more.txt")
			if err := os.Rename(filepath.Join(other.Checkpoint, "tokenizer.json"), "tokens.json"); err != nil {
				t.Fatal(err)
			}
			if name == "a teacher of a common name" {
				if err := os.RemoveAll(other.Run); err != nil {
					t.Fatal(err)
				}
				learn("--config", "tiny.yaml", "--name", "combo", "--corpus", "own.txt", "--set", "train.seed=9")
				if err := os.CopyFS(filepath.Join(to, "checkpoints", "runs", "combo"), os.DirFS("checkpoints/runs/combo")); err != nil {
					t.Fatal(err)
				}
			}
			sum := learn(append([]string{"--config", "tiny.yaml"}, args...)...)
			run := sum.Run
			if name == "not finished" {
				run = filepath.Join(run, "step-00000002")
			}
			if _, err := call(t, ReleaseCommand(), run, "--name", "again", "--text-licence", "a | <b>\n# c", "--out", "again", "--n", "1"); err != nil {
				t.Fatal(err)
			}
			card, err := os.ReadFile("again/" + released.CardFile)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(card), "\n# c") || strings.Contains(string(card), "<b>") {
				t.Errorf("the licence breaks the card:\n%s", card)
			}
			_, command, found := strings.Cut(string(card), "\n    chiplm train ")
			command, _, _ = strings.Cut(command, "\n")
			if !found || strings.Contains(string(card), "training was not finished") != (name == "not finished") {
				t.Fatalf("the card has no command, or is wrong about whether training was finished:\n%s", card)
			}
			for _, file := range []string{released.ConfigFile, released.TokenizerFile} {
				b, err := os.ReadFile("again/" + file)
				if err == nil {
					err = os.WriteFile(filepath.Join(to, file), b, 0o666)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(to)
			words, err := exec.Command("sh", "-c", `printf '%s\n' `+command).Output() // as a person's shell reads it
			if err != nil {
				t.Fatal(err)
			}
			again := learn(strings.Split(strings.TrimSpace(string(words)), "\n")...)
			if again.ModelSHA256 != sum.ModelSHA256 {
				t.Errorf("chiplm train %s: weights %.12s, those of the card are %.12s", command, again.ModelSHA256, sum.ModelSHA256)
			}
		})
	}
}

// storiesOf is a text of n stories of somebody.
func storiesOf(who string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s had %d red balls. %s ran to the big tree number %d and was happy.\n<|endoftext|>\n", who, i, who, i*i)
	}
	return b.String()
}
