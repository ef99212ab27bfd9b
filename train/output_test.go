package train

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// gone is a writer whose reader has gone away.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestProgressNobodyReadsDoesNotEndATraining(t *testing.T) {
	o := tinyOptions(t)
	o.Name = "read"
	want := mustRun(t, o)
	o.Name = "unread"
	got, err := Run(t.Context(), o, gone{}, false)
	if err != nil || got.ModelSHA256 != want.ModelSHA256 {
		t.Errorf("got %+v, %v", got, err)
	}
	b := &bar{w: gone{}}
	b.Step(Event{Step: 1, Steps: 2, Result: StepResult{Loss: 2}}, 1.25, 1000, 0)
	b.Note("a note")
	b.Finish()
}

func TestResultThatCannotBeWrittenIsAnError(t *testing.T) {
	o := tinyOptions(t)
	for _, extra := range [][]string{{"--json", "--name", "a"}, {"--name", "b"}} {
		cmd := Command(nil)
		cmd.SetOut(gone{})
		cmd.SetErr(io.Discard)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{"--config", o.Config, "--corpus", o.Corpus, "--out", o.Out, "--quiet", "--set", "train.tokens=128"}, extra...))
		if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, syscall.EPIPE) || !strings.Contains(err.Error(), "saved") {
			t.Errorf("%v: %v", extra, err)
		}
	}
}

func TestModelFilesAreCompleted(t *testing.T) {
	cmd := Command(nil)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"__complete", "--config", ""})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range configs.Builtin() {
		if !slices.Contains(strings.Fields(out.String()), name) {
			t.Errorf("%s is not offered: %s", name, out.String())
		}
	}
}
