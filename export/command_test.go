package export

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/checkpoints"
)

func TestCommand(t *testing.T) {
	root := t.TempDir()
	runs := filepath.Join(root, "runs")
	if _, err := checkpoints.Save(filepath.Join(runs, "tiny"), checkpoint(t, config(t)), 2); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(root, "out")
	text, _, err := run(t, Command(), "--runs", runs, "--out", out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Placement of tiny on esp32s3", "verified", "not measured", filepath.Join(out, ImageFile)} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if len(line) > 100 && !strings.Contains(line, root) {
			t.Errorf("a line of %d: %s", len(line), line)
		}
	}
	text, notes, err := run(t, Command(), filepath.Join(runs, "tiny"), "--target", "host", "--out", filepath.Join(root, "two"), "--bits", "2,trunk=8", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if !r.Manifest.Verified || !r.Manifest.PostTraining || r.Manifest.Target != "host" || r.Manifest.ModelHash == "" ||
		!strings.Contains(notes, "ple_table: trained with 4 bits in groups of 32, quantised after training to 2 bits") {
		t.Errorf("%+v\n%s", r.Manifest, notes)
	}
	for _, args := range [][]string{{"--target", "esp8266"}, {filepath.Join(root, "none")}, {"nothing", "--runs", filepath.Join(root, "none")}, {"--bits", "9", "--runs", runs}} {
		if _, _, err := run(t, Command(), append(args, "--out", filepath.Join(root, "x"))...); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}

// Without --out, a newer step or other bits of the same run replace an export, with a note; another run does not.
func TestDefaultFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	save := func(run string, change func(ck *checkpoints.Checkpoint)) {
		ck := checkpoint(t, config(t))
		if change != nil {
			change(ck)
		}
		if _, err := checkpoints.Save(run, ck, 5); err != nil {
			t.Fatal(err)
		}
	}
	save("runs/tiny", nil)
	text, notes, err := run(t, Command(), "--runs", "runs", "tiny")
	if err != nil || strings.Contains(notes, "replaced") || !strings.HasPrefix(text, "checkpoint: runs/tiny/step-00000007, step 7, 12,345 tokens\n") {
		t.Fatalf("%v\n%s\n%s", err, notes, text)
	}
	save("runs/tiny", func(ck *checkpoints.Checkpoint) { ck.State.Step = 1200 })
	if text, notes, err = run(t, Command(), "--runs", "runs", "tiny"); err != nil || !strings.Contains(notes, "exports/tiny-esp32s3: replaced the export of step 7") || !strings.Contains(text, "step 1,200") {
		t.Fatalf("%v\n%s\n%s", err, notes, text)
	}
	if _, notes, err = run(t, Command(), "--runs", "runs", "tiny", "--bits", "8"); err != nil || !strings.Contains(notes, "replaced the export of step 1,200") {
		t.Fatalf("%v\n%s", err, notes)
	}
	before, err := os.ReadFile("exports/tiny-esp32s3/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	save("runs/other", nil)
	save("elsewhere/tiny", func(ck *checkpoints.Checkpoint) { ck.State.CorpusHash = "another" })
	for name, want := range map[string]string{"other": "of the run \"tiny\", this checkpoint is of \"other\"", "elsewhere/tiny": "with another corpus or tokenizer"} {
		_, _, err := run(t, Command(), "--runs", "runs", name)
		if !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--out") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after, _ := os.ReadFile("exports/tiny-esp32s3/manifest.json"); string(after) != string(before) {
		t.Error("the export was touched")
	}
	if _, _, err := run(t, Command(), "--runs", "runs", "other", "--out", "exports/tiny-esp32s3"); err != nil {
		t.Errorf("asked for by name: %v", err)
	}
}
