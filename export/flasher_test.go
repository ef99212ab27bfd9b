package export

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/export/parts"
)

// firmwareFolder is a folder of firmware for a chip with the partitions of a table.
func firmwareFolder(t *testing.T, chip uint16, csv string) string {
	t.Helper()
	table, err := parts.ParseCSV([]byte(csv))
	if err != nil {
		t.Fatal(err)
	}
	program := make([]byte, 300)
	program[0] = 0xE9
	binary.LittleEndian.PutUint16(program[12:], chip)
	binary.LittleEndian.PutUint32(program[32:], 0xABCD5432)
	copy(program[48:], "v9")
	dir := t.TempDir()
	for name, b := range map[string][]byte{parts.Bootloader: program, parts.TableFile: table.Binary(), parts.App: program} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const boardCSV = "factory,app,factory,0x10000,768K\nmodel,0x40,0,0xD0000,0xF30000"

func flasherAt(t *testing.T, dir string) (f Flasher, ok bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, FlasherFile))
	if errors.Is(err, os.ErrNotExist) {
		return f, false
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f, true
}

func TestFlasher(t *testing.T) {
	root := t.TempDir()
	runs := filepath.Join(root, "runs")
	if _, err := checkpoints.Save(filepath.Join(runs, "tiny"), checkpoint(t, config(t)), 2); err != nil {
		t.Fatal(err)
	}
	fw := firmwareFolder(t, 9, boardCSV)
	export := func(args ...string) (string, error) {
		out := filepath.Join(root, "out")
		_, _, err := run(t, Command(), append([]string{"tiny", "--runs", runs, "--out", out}, args...)...)
		return out, err
	}
	model := FlasherPart{ImageFile, 0xD0000}
	for name, c := range map[string]struct {
		args    []string
		parts   []FlasherPart // none: no manifest
		version string
	}{
		"model alone":   {nil, []FlasherPart{model}, "step 7"},
		"with firmware": {[]string{"--firmware", fw}, []FlasherPart{{parts.Bootloader, 0}, {parts.TableFile, 0x8000}, {parts.App, 0x10000}, model}, "step 7, firmware v9"},
		"host":          {[]string{"--target", "host"}, nil, ""},
	} {
		dir, err := export(c.args...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f, ok := flasherAt(t, dir)
		if !ok && c.parts == nil {
			continue
		}
		want := Flasher{"tiny", c.version, true, []FlasherBuild{{"ESP32-S3", c.parts}}}
		if !reflect.DeepEqual(f, want) {
			t.Errorf("%s: %+v\nwant %+v", name, f, want)
		}
		m, err := ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range append(c.parts, FlasherPart{Path: FlasherFile}) {
			if _, listed := m.Files[p.Path]; !listed {
				t.Errorf("%s: %s has no hash in the manifest", name, p.Path)
			}
		}
		for file := range m.Files {
			if strings.HasSuffix(file, ".bin") && len(c.parts) == 1 {
				t.Errorf("%s: %s was left by an earlier export", name, file)
			}
		}
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"another chip's": {[]string{"--firmware", firmwareFolder(t, 0, boardCSV)}, "another chip's"},
		"no model":       {[]string{"--firmware", firmwareFolder(t, 9, "factory,app,factory,0x10000,768K")}, `no partition "model" (factory)`},
		"elsewhere":      {[]string{"--firmware", firmwareFolder(t, 9, "factory,app,factory,0x10000,2M\nmodel,0x40,0,0x210000,4M")}, "at 0x210000"},
		"host":           {[]string{"--firmware", fw, "--target", "host"}, "takes no --firmware"},
		"nothing":        {[]string{"--firmware", filepath.Join(root, "none")}, "bad firmware"},
	} {
		if _, err := export(c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := ReadManifest(fw); !errors.Is(err, ErrFolder) {
		t.Errorf("a folder of firmware as an export: %v", err)
	}
}

// A browser that erases leaves a model without firmware: the help warns of it, as the manifest lets the user decline.
func TestHelpWarnsOfErasing(t *testing.T) {
	if long := Command().Long; !strings.Contains(long, "decline when the browser offers to erase the chip") {
		t.Error(long)
	}
}
