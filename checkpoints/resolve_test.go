package checkpoints

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	t.Chdir(t.TempDir())
	root := "runs"
	if _, err := Resolve(root, ""); !errors.Is(err, ErrNone) {
		t.Errorf("no runs: %v", err)
	}
	if _, err := Resolve(root, "combo"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "train first") {
		t.Errorf("no runs: %v", err)
	}
	mustSave(t, filepath.Join(root, "combo"), sample(t, 1), 2)
	demo := mustSave(t, filepath.Join(root, "demo"), sample(t, 2), 2)
	outside := mustSave(t, filepath.Join("elsewhere", "combo"), sample(t, 3), 2)
	for _, dir := range []string{"data", "demo", filepath.Join(root, "empty"), filepath.Join(root, ".hidden")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("model.clm", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(Runs(root), " "); got != "combo demo" {
		t.Errorf("the runs are %q", got)
	}
	for name, want := range map[string]string{
		"":                     demo,
		"combo":                "runs/combo",
		"combo/":               "runs/combo",
		"combo/step-00000001":  "runs/combo/step-00000001",
		"demo":                 "runs/demo", // the folder ./demo is neither run nor checkpoint
		"./runs/combo":         "./runs/combo",
		"elsewhere/combo":      "elsewhere/combo",
		outside:                outside,
		"data":                 "data", // for Load to refuse
		".":                    ".",
		"model.clm":            "model.clm",
		"runs/../runs/demo":    "runs/../runs/demo",
		"combo/../demo":        "runs/demo",
		filepath.Dir(outside):  filepath.Dir(outside),
		"combo/model/../../..": "",
	} {
		got, err := Resolve(root, name)
		if want == "" {
			if err == nil {
				t.Errorf("%q gives %s", name, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q gives %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"cmobo":               "cmobo: there is no such path, and no run of that name under runs: did you mean combo?",
		"cmobo/step-00000001": "did you mean combo?",
		"combo/step-00000009": "the run combo has no step-00000009",
		"somethingelse":       "the runs are combo, demo",
		"model.clm/x":         "the runs are combo, demo",
		"../demo":             "../demo: there is no such path",
		"/nowhere/at/all":     "there is no such path",
	} {
		if got, err := Resolve(root, name); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), fs.ErrNotExist.Error()) {
			t.Errorf("%q gives %q, %v; want %s", name, got, err, want)
		}
	}
	for _, name := range []string{"a\x00b", strings.Repeat("x", 5000)} {
		if got, err := Resolve(root, name); err == nil {
			t.Errorf("%q gives %q", name, got)
		}
	}
	// A run that takes its name from a folder of the working directory that is a run itself stays out of reach by name.
	mustSave(t, "combo", sample(t, 4), 1)
	if got, err := Resolve(root, "combo"); err != nil || got != "combo" {
		t.Errorf("have %q, %v", got, err)
	}
}

func TestRunName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "combo", "step-00000001")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for path, want := range map[string]string{"": "", ".": "combo", dir: "combo", "../step-00000001/": "combo", "/x/released": "released", "runs/demo/step-00000400": "demo"} {
		if got := RunName(path); got != want {
			t.Errorf("%q is of %q, want %q", path, got, want)
		}
	}
}

func TestInfoByName(t *testing.T) {
	t.Chdir(t.TempDir())
	mustSave(t, filepath.Join("mine", "combo"), sample(t, 1), 2)
	mustSave(t, filepath.Join("mine", "other"), sample(t, 2), 2)
	out, _, err := runCommand(t, "--runs", "mine", "combo", "other")
	if err != nil || !strings.Contains(out, "mine/combo/step-00000001") || !strings.Contains(out, "mine/other/step-00000002") {
		t.Errorf("%v, have %s", err, out)
	}
	if out, _, err := runCommand(t, "--runs", "mine"); err != nil || !strings.Contains(out, "mine/other/step-00000002") {
		t.Errorf("%v, have %s", err, out)
	}
	if _, _, err := runCommand(t, "--runs", "mine", "comb"); err == nil || !strings.Contains(err.Error(), "did you mean combo?") {
		t.Errorf("have %v", err)
	}
}

// A file that is nothing of a model is told as that; one of a checkpoint leads to its folder.
func TestLoadOfFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "README.md")
	if err := os.WriteFile(text, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(text); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "no image") {
		t.Errorf("%v", err)
	}
	if _, err := Load(filepath.Join(dir, "model.clm")); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), fs.ErrNotExist.Error()) {
		t.Errorf("%v", err)
	}
}
