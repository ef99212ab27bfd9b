package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

func hashOf(t *testing.T, path string) string {
	t.Helper()
	im, err := openModel(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	return fmt.Sprintf("%x", im.Model().ModelSHA256)
}

// Ids of one model's tokenizer mean nothing to another: the board's model is asked for before they are sent.
func TestIDsOfAnotherModel(t *testing.T) {
	model, other := tinymodel.Image(t), tinymodel.Image(t, "d_ff=64")
	name := board(t, model)
	chat := func(image string) (string, error) {
		out, _, err := run(t, context.Background(), nil, ChatCommand(), "--port", name, "--ids", "--model", image, "--tokens", "3", "Once")
		return out, err
	}
	if _, err := chat(model); err != nil {
		t.Error(err)
	}
	out, err := chat(other)
	if !errors.Is(err, ErrOtherModel) || out != "" {
		t.Fatalf("%v, %q", err, out)
	}
	for _, want := range []string{hashOf(t, other), hashOf(t, model), other, name, "chiplm flash"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in: %v", want, err)
		}
	}
}

// What the model's context or the protocol does not allow is refused here, by the name of the flag and with exit status 2.
func TestTokensAreChecked(t *testing.T) {
	model := tinymodel.Image(t)
	name := board(t, model)
	for _, c := range []struct {
		command func() *cobra.Command
		args    []string
		want    string
	}{
		{BoardCommand, []string{"profile", "--tokens", "0"}, "--tokens 0"},
		{BoardCommand, []string{"profile", "--tokens", "1"}, "--tokens 1"},
		{BoardCommand, []string{"profile", "--tokens", "1000001"}, "--tokens 1000001"},
		{BoardCommand, []string{"digest", "--tokens", "0"}, "--tokens 0"},
		{BoardCommand, []string{"digest", "--tokens", "33"}, "--tokens 33: the context of this model has 32"},
		{BoardCommand, []string{"digest", "--tokens", "33", "--model", model}, "--tokens 33: the context of this model has 32"},
		{ChatCommand, []string{"--tokens", "0", "x"}, "--tokens 0"},
		{ChatCommand, []string{"--tokens", "1000001", "x"}, "--tokens 1000001"},
		{ChatCommand, []string{"--top-k", "4294967296", "x"}, "--top-k 4294967296"},
		{ChatCommand, nil, "standard input holds no prompt"},
	} {
		_, _, err := run(t, context.Background(), strings.NewReader("\n"), c.command(), append(c.args, "--port", name)...)
		var coded interface{ ExitCode() int }
		if !errors.As(err, &coded) || coded.ExitCode() != 2 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
	for _, args := range [][]string{{"profile", "--tokens", "2"}, {"digest", "--tokens", "32"}} {
		if _, _, err := run(t, context.Background(), nil, BoardCommand(), append(args, "--port", name)...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// A run and a checkpoint are told from an image that is missing or damaged.
func TestWhatIsNotExported(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	step := filepath.Join(checkpoints.DefaultRoot, "combo", "step-00000200")
	weights := filepath.Join(step, checkpoints.ModelFile)
	if err := os.MkdirAll(step, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(weights, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		step: "is a checkpoint; export it first: chiplm export " + step + " --target esp32s3", weights: "chiplm export " + step,
		filepath.Dir(step): "is a run; export it first", "combo": "combo is a run; export it first: chiplm export combo",
	} {
		for _, args := range [][]string{{"--virtual", path}, {"digest", "--model", path, "--port", "none"}} {
			if _, _, err := run(t, context.Background(), nil, BoardCommand(), args...); !errors.Is(err, export.ErrUnexported) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %s", args, err, want)
			}
		}
		if _, _, err := run(t, context.Background(), nil, ChatCommand(), "--ids", "--model", path, "x"); !errors.Is(err, export.ErrUnexported) {
			t.Errorf("chat: %s: %v", path, err)
		}
	}
	if err := os.WriteFile(filepath.Join(step, export.ImageFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "none", root, "step-00000200", step, filepath.Join(step, export.ImageFile)} {
		if err := export.Exported(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
