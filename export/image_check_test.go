package export

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/export/image"
)

func TestImageCheck(t *testing.T) {
	path, b := imageFile(t)
	text, _, err := run(t, ImageCommand(), "check", path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "verified: ") {
		t.Errorf("the last line is %q", last)
	}
	if !strings.Contains(text, "ok      golden in the C engine") || strings.Contains(text, "FAILED") {
		t.Error(text)
	}

	// A golden that only the engine can find wrong.
	m := *b.Model
	m.Golden.Digest++
	if err := image.WriteFile(path, &m); err != nil {
		t.Fatal(err)
	}
	text, _, err = run(t, ImageCommand(), "check", path)
	if !errors.Is(err, ErrCheck) || strings.Contains(text, "verified:") || !strings.Contains(text, "FAILED  golden in the C engine") {
		t.Errorf("%v\n%s", err, text)
	}

	// One advice, whatever is wrong: a file cut off in copying is not the checkpoint's fault.
	if err := os.WriteFile(path, b.Bytes[:len(b.Bytes)-4096], 0o600); err != nil {
		t.Fatal(err)
	}
	text, _, err = run(t, ImageCommand(), "check", path)
	if all := text + err.Error(); !errors.Is(err, ErrCheck) || strings.Count(all, "again,") != 1 || !strings.Contains(err.Error(), "copy it again") || strings.Contains(text, "again") {
		t.Errorf("%v\n%s", err, text)
	}

	// Damage that any reader finds; JSON tells where, and the exit is an error all the same.
	b.Bytes[4] = 9
	if err := os.WriteFile(path, b.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	text, _, err = run(t, ImageCommand(), "check", path, "--json")
	var r checkReport
	if jsonErr := json.Unmarshal([]byte(text), &r); jsonErr != nil {
		t.Fatal(jsonErr)
	}
	last := r.Checks[len(r.Checks)-1]
	if !errors.Is(err, ErrCheck) || r.Verified || last.Name != "version" || last.OK || r.Advice != "export the checkpoint again with this chiplm" {
		t.Errorf("%v %+v", err, r)
	}
}

// Two entries of the same bytes are well-formed, but no tokenizer: check must not verify what sample refuses.
func TestCheckRefusesATokenizerThatCannotBeUsed(t *testing.T) {
	built := build(t, checkpoint(t, config(t)), Options{})
	m := *built.Model
	m.Tokenizer = bytes.Clone(m.Tokenizer)
	entries := int(binary.LittleEndian.Uint32(m.Tokenizer[4:]))
	text := m.Tokenizer[len(m.Tokenizer)-int(binary.LittleEndian.Uint32(m.Tokenizer[16:])):]
	changed := false
	for i := range entries {
		at := binary.LittleEndian.Uint32(m.Tokenizer[20+4*i:])
		if end := binary.LittleEndian.Uint32(m.Tokenizer[24+4*i:]); end == at+1 && text[at] == 1 {
			text[at], changed = 2, true // 2 is an entry already, and no merge uses either
		}
	}
	if !changed {
		t.Fatal("the tokenizer has no entry for the byte 1")
	}
	path := filepath.Join(t.TempDir(), ImageFile)
	if err := image.WriteFile(path, &m); err != nil {
		t.Fatal(err)
	}
	r, err := checkFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verified {
		t.Error("an image with two equal entries was verified")
	}
}
