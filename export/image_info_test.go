package export

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/export/image"
)

// imageFile writes a small image and returns its path and what was built.
func imageFile(t *testing.T) (string, *Built) {
	t.Helper()
	b := build(t, checkpoint(t, config(t)), Options{Target: chip(t)})
	path := filepath.Join(t.TempDir(), ImageFile)
	if err := os.WriteFile(path, b.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, b
}

func TestImageInfo(t *testing.T) {
	path, b := imageFile(t)
	text, _, err := run(t, ImageCommand(), "info", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"image version 2", "d_model 40", "layers.1.qkv", "120 x 40", "flash", "byte-level BPE, 262 entries", "Once upon a time",
		"name: tiny", b.Tokenizer.Hash(),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if len(line) > 100 && strings.Contains(line, "layers.") {
			t.Errorf("a line of %d: %s", len(line), line)
		}
	}
	text, _, err = run(t, ImageCommand(), "info", path, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var info imageInfo
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		t.Fatal(err)
	}
	if info.Params != int64(b.Config.Parameters()) || len(info.Tensors) != len(b.Model.Tensors) || info.Bytes != int64(len(b.Bytes)) ||
		info.Sizes.DModel != 40 || len(info.Golden.Top) != goldenTop || info.Tensors[2].Tier != b.Model.Tensors[2].Tier {
		t.Errorf("%+v", info)
	}
	if _, _, err := run(t, ImageCommand(), "info", t.TempDir()); err == nil {
		t.Error("a folder has no info")
	}
}

func TestImageInfoRefusesDamage(t *testing.T) {
	path, b := imageFile(t)
	b.Bytes[len(b.Bytes)/2] ^= 1
	if err := os.WriteFile(path, b.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := run(t, ImageCommand(), "info", path); err == nil || !strings.Contains(err.Error(), image.ErrFileCRC.Error()) {
		t.Error(err)
	}
}
