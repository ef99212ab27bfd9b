package checkpoints

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/data/regular"
)

// maxSmallFile bounds the files that are read whole.
const maxSmallFile = 256 << 20

// digests are the SHA-256 (hex) of a checkpoint's files by name.
type digests map[string]string

// required and optional are the only names that a DONE may list, in the order in which it lists them.
var (
	required = []string{ModelFile, ConfigFile, TokenizerFile, StateFile}
	optional = []string{MomentsFile}
)

func (d digests) encode() []byte {
	var b strings.Builder
	for _, name := range slices.Concat(required, optional) {
		if sum, ok := d[name]; ok {
			fmt.Fprintf(&b, "%s  %s\n", sum, name)
		}
	}
	return []byte(b.String())
}

// readDone reads the marker of a complete checkpoint. The error wraps ErrIncomplete when there is none.
func readDone(dir string) (digests, error) {
	text, err := readSmall(filepath.Join(dir, DoneFile), 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: it has no %s, so its save was cut off", dir, ErrIncomplete, DoneFile)
	}
	if err := notAFile(dir, DoneFile, err); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	bad := func(what string) error {
		return fmt.Errorf("%s: %w: %s %s", dir, ErrDamaged, DoneFile, what)
	}
	d := digests{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != 32 {
			return nil, bad("is not a list of hashes")
		}
		if !slices.Contains(required, name) && !slices.Contains(optional, name) {
			return nil, bad("lists a file that no checkpoint has")
		}
		if d[name] != "" {
			return nil, bad("lists " + name + " twice")
		}
		d[name] = strings.ToLower(sum)
	}
	for _, name := range required {
		if d[name] == "" {
			return nil, bad("does not list " + name)
		}
	}
	return d, nil
}

// readSmall reads a file of at most limit bytes.
func readSmall(path string, limit int64) ([]byte, error) {
	text, err := regular.ReadFile(path, limit)
	if errors.Is(err, regular.ErrTooLarge) {
		return nil, fmt.Errorf("%w: %s is larger than %d bytes", ErrFormat, filepath.Base(path), limit)
	}
	return text, err
}
