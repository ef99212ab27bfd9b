package eval

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/esp32ai"
	"github.com/chiplm/chiplm/export/esp32ai/testfile"
)

// An image without a tokenizer can be measured, for which ids are enough; whatever wants text refuses it and says why.
func TestImageWithoutTokenizer(t *testing.T) {
	f, err := esp32ai.Parse(testfile.Random(testfile.Shape{InVocab: 260, OutVocab: 260, D: 16, Layers: 1, Heads: 2, F: 20, P: 8, Context: 24,
		Group: 32, Theta: 10000, Tied: true}, 1).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	b, err := export.ImportImage(context.Background(), f, "mute", nil, export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.clm")
	if err := os.WriteFile(path, b.Bytes, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := OpenScript(t.Context(), path, "", "", 50, 8, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, w := range s.Windows {
		if len(w) == 0 || len(w) > 24 || w[0] != 0 {
			t.Errorf("a window %v", w)
		}
	}
	_, stories := tinyRunOf(t, wholeModel, nil)
	for name, open := range map[string]func() error{
		"sample": func() error { _, err := openSubject(t.Context(), path, "", io.Discard); return err },
		"bench with stories": func() error {
			_, err := OpenScript(t.Context(), path, "", stories, 50, 8, io.Discard)
			return err
		},
	} {
		if err := open(); !errors.Is(err, bpe.ErrNone) || !strings.Contains(err.Error(), "--tokenizer") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
