package checkpoints

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// spoil makes the state of a checkpoint unreadable, each in its way.
var spoil = map[string]func(t *testing.T, dir string){
	"an empty state": func(t *testing.T, dir string) { put(t, dir, StateFile, nil) },
	"no state":       func(t *testing.T, dir string) { remove(t, dir, StateFile) },
	"an empty DONE":  func(t *testing.T, dir string) { put(t, dir, DoneFile, nil) },
	"another serial": func(t *testing.T, dir string) { change(t, dir, `"serial": `, `"serial": 9`) },
	"a newer version": func(t *testing.T, dir string) {
		change(t, dir, `"version": 1`, `"version": 2`)
		done, err := readDone(dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, StateFile))
		if err != nil {
			t.Fatal(err)
		}
		done[StateFile] = hashOf(text)
		put(t, dir, DoneFile, done.encode())
	},
	"a pipe for a state": func(t *testing.T, dir string) { pipe(t, dir, StateFile) },
	"a pipe for DONE":    func(t *testing.T, dir string) { pipe(t, dir, DoneFile) },
	"a device for a state": func(t *testing.T, dir string) {
		remove(t, dir, StateFile)
		if err := os.Symlink("/dev/zero", filepath.Join(dir, StateFile)); err != nil {
			t.Fatal(err)
		}
	},
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func pipe(t *testing.T, dir, name string) {
	t.Helper()
	remove(t, dir, name)
	if err := unix.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
		t.Fatal(err)
	}
}

func change(t *testing.T, dir, from, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, StateFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(from)) {
		t.Fatalf("no %q in %s", from, text)
	}
	put(t, dir, StateFile, bytes.Replace(text, []byte(from), []byte(to), 1))
}

// What cannot be read is never deleted, and never ignored: the run counts as taken, and until a newer checkpoint is
// saved it is the newest, for every reader.
func TestNothingUnreadableIsLost(t *testing.T) {
	for name, harm := range spoil {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			run := filepath.Join(root, "run")
			first := mustSave(t, run, sample(t, 15), 2)
			second := mustSave(t, run, sample(t, 20), 2)
			mustSave(t, filepath.Join(root, "other"), sample(t, 3), 1) // a run that is whole does not hide the damage
			harm(t, second)
			for what, try := range map[string]func() error{
				"Newest":        func() error { _, err := Newest(root); return err },
				"Newest of run": func() error { _, err := Newest(run); return err },
				"Load":          func() error { _, err := Load(run); return err },
				"LoadModel":     func() error { _, err := LoadModel(run); return err },
				"Load itself":   func() error { _, err := Load(second); return err },
			} {
				err := try()
				if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), second) ||
					!strings.Contains(err.Error(), "delete step-00000020 or move it out of "+run+", and the run goes on from step-00000015") {
					t.Errorf("%s: have %v", what, err)
				}
			}
			harm(t, first)
			if _, err := Newest(root); err == nil || strings.Contains(err.Error(), "goes on") {
				t.Errorf("nothing to go on from, have %v", err)
			}
			if has, err := HasCheckpoints(run); !has || err != nil {
				t.Errorf("HasCheckpoints: %v, %v", has, err)
			}
			for _, step := range []int{21, 22} {
				mustSave(t, run, sample(t, step), 1)
				mustBe(t, run, step)
			}
			if got := folders(t, run); !slices.Equal(got, []string{"step-00000015", "step-00000020", "step-00000022"}) {
				t.Errorf("left %v", got)
			}
		})
	}
}

// Doing what the error says works.
func TestTheRemedyWorks(t *testing.T) {
	run := t.TempDir()
	for step := 1; step <= 4; step++ {
		mustSave(t, run, sample(t, step), 4)
	}
	put(t, filepath.Join(run, "step-00000004"), ModelFile, nil)
	put(t, filepath.Join(run, "step-00000003"), StateFile, nil)
	_, err := Load(run)
	if err == nil || !strings.Contains(err.Error(), "delete step-00000004 and step-00000003 or move it out of "+run+", and the run goes on from step-00000002") {
		t.Fatalf("have %v", err)
	}
	for _, name := range []string{"step-00000003", "step-00000004"} {
		if err := os.Rename(filepath.Join(run, name), filepath.Join(t.TempDir(), name)); err != nil {
			t.Fatal(err)
		}
	}
	mustBe(t, run, 2)
	if newest, err := Newest(run); err != nil || filepath.Base(newest) != "step-00000002" {
		t.Errorf("have %s, %v", newest, err)
	}
	// An older damaged one is in nobody's way, and its error names the newest.
	put(t, filepath.Join(run, "step-00000001"), StateFile, nil)
	mustBe(t, run, 2)
	if _, err := Load(filepath.Join(run, "step-00000001")); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "name another, such as "+filepath.Join(run, "step-00000002")) {
		t.Errorf("have %v", err)
	}
}

func TestARunThatWentBackKeepsItsOrderAroundADamagedOne(t *testing.T) {
	run := t.TempDir()
	for _, step := range []int{8, 9, 2, 3} {
		mustSave(t, run, sample(t, step), 0)
	}
	put(t, filepath.Join(run, "step-00000002"), StateFile, nil)
	mustBe(t, run, 3)
	all, err := list(run)
	if err != nil || len(all) != 4 || all[0].state.Step != 3 {
		t.Errorf("have %+v, %v", all, err)
	}
}

func TestHasCheckpoints(t *testing.T) {
	run := t.TempDir()
	put(t, run, "step-00000001", nil) // a file
	for path, want := range map[string]bool{run: false, filepath.Join(run, "nowhere"): false} {
		if has, err := HasCheckpoints(path); has != want || err != nil {
			t.Errorf("%s: %v, %v", path, has, err)
		}
	}
	if _, err := HasCheckpoints(filepath.Join(run, "step-00000001")); err == nil {
		t.Error("a file for a run was no error")
	}
	if err := os.Mkdir(filepath.Join(run, "step-00000002"), 0o755); err != nil {
		t.Fatal(err)
	}
	if has, err := HasCheckpoints(run); !has || err != nil {
		t.Errorf("an empty checkpoint: %v, %v", has, err)
	}
}

// No file of a checkpoint may block or go on for ever.
func TestPipesAndDevices(t *testing.T) {
	for _, name := range []string{ModelFile, ConfigFile, TokenizerFile, MomentsFile, StateFile, DoneFile} {
		for _, device := range []bool{false, true} {
			dir := mustSave(t, t.TempDir(), sample(t, 1), 1)
			if remove(t, dir, name); device {
				if err := os.Symlink("/dev/zero", filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			} else if err := unix.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), name+" is not a regular file") {
				t.Errorf("%s, device %v: have %v", name, device, err)
			}
		}
	}
}
