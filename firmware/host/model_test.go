package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/firmware/host/virtual"
	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

func hashOf(t *testing.T, path string) string {
	t.Helper()
	im, err := openModel(t.Context(), "", path, io.Discard)
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

// Whatever names a model gives the digest of its weights: image, export, run, checkpoint, release. No board is asked.
func TestDigestWithoutBoard(t *testing.T) {
	ctx := released.With(t.Context(), released.New(os.DirFS(filepath.Dir(tinymodel.Release(t)))))
	trained := tinymodel.Run(t)
	exported := tinymodel.Export(t, "esp32s3", nil)
	var want string
	for i, model := range []string{tinymodel.Image(t), exported, filepath.Join(exported, export.ImageFile), trained, "tiny", "released/tiny"} {
		out, errs, err := run(t, ctx, nil, BoardCommand(), "digest", "--model", model, "--no-board")
		if err != nil {
			t.Fatalf("%s: %v\n%s", model, err, errs)
		}
		if i == 0 {
			want = out
		}
		if out != want || !strings.HasPrefix(out, "digest of 32 tokens") || !strings.Contains(out, "0x") { // the context
			t.Errorf("%s: %s\nwant %s", model, out, want)
		}
	}
	for _, args := range [][]string{{}, {"--model", trained, "--port", "x"}, {"--model", trained, "--mode", "one"}, {"--model", trained, "--tokens", "64"}} {
		_, _, err := run(t, ctx, nil, BoardCommand(), append([]string{"digest", "--no-board"}, args...)...)
		var coded interface{ ExitCode() int }
		if !errors.As(err, &coded) || coded.ExitCode() != 2 {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// onceMade is a context that ends when the folder for temporary files holds something.
type onceMade struct{ context.Context }

func (c onceMade) Err() error {
	if there, _ := os.ReadDir(os.TempDir()); len(there) > 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

// An interrupt just after the image of a virtual board was made leaves nothing.
func TestInterruptLeavesNoImage(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	err := runVirtual(onceMade{t.Context()}, virtual.Options{Model: tinymodel.Run(t)}, "", "", io.Discard, io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

// An image for a board is made of whatever names a model, and it goes when the board does.
func TestImageOfAnyModel(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx := released.With(t.Context(), released.New(os.DirFS(filepath.Dir(tinymodel.Release(t)))))
	image, trained := tinymodel.Image(t), tinymodel.Run(t)
	for name, made := range map[string]bool{image: false, trained: true, "tiny": true} {
		path, remove, err := chipImage(ctx, "", name, io.Discard)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if hashOf(t, path) == "" || (path != name) != made {
			t.Errorf("%s: %s", name, path)
		}
		if made {
			board(t, path)
		}
		if err := remove(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
			t.Errorf("%s leaves %v", name, left)
		}
	}
}

// What is not there, and what has no image, is told with the command that makes it.
func TestWhatIsNotThere(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, want := range map[string]string{
		"exports/combo-esp32s3":            "chiplm export combo --target esp32s3",
		"exports/my-run-esp32s3/model.clm": "chiplm export my-run --target esp32s3",
		"../exports/combo-esp32s3":         "chiplm export combo --target esp32s3",
		"nosuch":                           "there is no such path",
	} {
		for _, args := range [][]string{{"--virtual", path}, {"digest", "--model", path, "--no-board"}} {
			if _, _, err := run(t, t.Context(), nil, BoardCommand(), args...); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %s", args, err, want)
			}
		}
	}
}

// A run and a checkpoint are no images, which a program that flashes needs.
func TestWhatIsNotExported(t *testing.T) {
	t.Chdir(t.TempDir())
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
		if err := export.Exported(path); !errors.Is(err, export.ErrUnexported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(step, export.ImageFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "none", ".", "step-00000200", step, filepath.Join(step, export.ImageFile)} {
		if err := export.Exported(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
