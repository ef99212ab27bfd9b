package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/image"
)

// The files of an export folder.
const (
	ImageFile     = "model.clm"
	GoldenFile    = "golden.json"
	PlacementText = "placement.txt"
	PlacementJSON = "placement.json"
	SizesText     = "sizes.txt"
	SizesJSON     = "sizes.json"
	FlasherFile   = "flasher.json" // read by flashers that run in a browser; for chips that can be flashed
	ManifestFile  = "manifest.json"
)

// ErrFolder is wrapped when the output folder exists and is no export folder, so that nothing else is overwritten.
var ErrFolder = errors.New("not an export folder")

// ErrOther is wrapped when the default folder holds the export of another run or model.
var ErrOther = errors.New("holds another export")

// manifestKind marks a folder as ours.
const manifestKind = "chiplm export"

// Manifest says what an export folder holds and what it was made from.
type Manifest struct {
	Kind          string              `json:"kind"`
	Version       int                 `json:"version"`
	Model         string              `json:"model"`
	Run           string              `json:"run"`                // the checkpoint's run, or released/NAME; of an import empty
	Imported      string              `json:"imported,omitempty"` // the format of the file that was imported
	Target        string              `json:"target"`
	Parameters    int                 `json:"parameters"`
	Step          int                 `json:"step"`
	Tokens        int64               `json:"tokens"` // seen in training
	PostTraining  bool                `json:"post_training_quantisation"`
	Verified      bool                `json:"verified"`
	Digest        string              `json:"golden_digest"`
	ModelHash     string              `json:"model_sha256"` // of the checkpoint's weights, or of the file that was imported
	TokenizerHash string              `json:"tokenizer_sha256"`
	ConfigHash    string              `json:"config_sha256"` // of the configuration in the image
	CorpusHash    string              `json:"corpus_sha256"`
	Firmware      string              `json:"firmware,omitempty"` // the version of the firmware beside the image
	Files         map[string]FileHash `json:"files"`
}

// FileHash is a file's size and SHA-256.
type FileHash struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Write puts an export folder at dir: written and verified beside it under a temporary name, synced, then renamed. An
// older export folder there is replaced; anything else is refused with [ErrFolder] and left alone.
func Write(ctx context.Context, dir string, ck *checkpoints.Checkpoint, b *Built) (*Manifest, error) {
	return write(ctx, dir, b, originOf(ck))
}

// originOf is what the manifest says of the checkpoint that an image was made from.
func originOf(ck *checkpoints.Checkpoint) Manifest {
	s := &ck.State
	return Manifest{Run: checkpoints.RunName(ck.Dir), Step: s.Step, Tokens: s.Tokens, ModelHash: ck.ModelSHA256, CorpusHash: s.CorpusHash,
		TokenizerHash: s.TokenizerHash}
}

// write is [Write]; m says where the model is from, and the rest of it is filled in.
func write(ctx context.Context, dir string, b *Built, m Manifest) (*Manifest, error) {
	if err := replaceable(dir); err != nil {
		return nil, err
	}
	if err := PutFolder(dir, func(tmp string) error { return fill(ctx, tmp, b, &m) }); err != nil {
		return nil, err
	}
	return &m, nil
}

// PutFolder puts a folder at dir whose files fill writes: first beside it under a temporary name, synced, then renamed. A
// folder there is replaced.
func PutFolder(dir string, fill func(tmp string) error) error {
	dir = filepath.Clean(dir)
	parent := filepath.Dir(dir)
	if base := filepath.Base(dir); base == "." || base == ".." || parent == dir {
		return fmt.Errorf("%s is %w to replace: name a folder of its own with --out, such as out/combo", dir, ErrFolder)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	clearDead(parent, filepath.Base(dir))
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".*.tmp")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer os.RemoveAll(tmp) // does nothing after the rename
	if err := fill(tmp); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := syncDir(tmp); err != nil {
		return err
	}
	if err := swap(tmp, dir); err != nil {
		return err
	}
	return syncDir(parent)
}

// deadAfter is the age at which a temporary folder was left by an export that was killed: an export takes seconds.
const deadAfter = time.Hour

// clearDead removes what killed exports to the same folder left behind. It is a courtesy: failures do not matter.
func clearDead(parent, base string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), "."+base+".") || !strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > deadAfter {
			os.RemoveAll(filepath.Join(parent, e.Name()))
		}
	}
}

// fill writes all files of the folder and verifies the image that was written. m says where the model is from.
func fill(ctx context.Context, dir string, b *Built, m *Manifest) error {
	path := filepath.Join(dir, ImageFile)
	if err := image.WriteFile(path, b.Model); err != nil {
		return err
	}
	f, err := image.Open(path)
	if err != nil {
		return fmt.Errorf("the image that was just written cannot be read: %w", err)
	}
	if err := verify(path); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	sizes := sizesOf(f)
	g := describeGolden(&b.Model.Golden, b.Tokenizer)
	for name, write := range map[string]func(io.Writer) error{
		GoldenFile:    func(w io.Writer) error { return jsonout.Write(w, g) },
		PlacementText: b.Layout.Write,
		PlacementJSON: func(w io.Writer) error { return jsonout.Write(w, b.Layout) },
		SizesText:     sizes.write,
		SizesJSON:     func(w io.Writer) error { return jsonout.Write(w, sizes) },
	} {
		if err := intoFile(filepath.Join(dir, name), write); err != nil {
			return err
		}
	}
	m.Kind, m.Version, m.Model, m.Target, m.Parameters = manifestKind, 1, b.Config.Name, b.Target.Name, b.Config.Parameters()
	m.PostTraining, m.Verified, m.Digest, m.ConfigHash = b.PostTraining, true, g.Digest, b.Config.Hash()
	if b.Tokenizer != nil {
		m.TokenizerHash = b.Tokenizer.Hash()
	}
	if err := fillFlasher(dir, m, b); err != nil {
		return err
	}
	if m.Files, err = hashFiles(dir); err != nil {
		return err
	}
	return intoFile(filepath.Join(dir, ManifestFile), func(w io.Writer) error { return jsonout.Write(w, m) })
}

// verify loads an image into the C engine and runs its golden.
func verify(path string) error {
	im, err := engine.OpenImage(path)
	if err != nil {
		return fmt.Errorf("the engine refuses the image: %w", err)
	}
	defer im.Close()
	if err := engine.Verify(im); err != nil {
		return fmt.Errorf("the engine does not give the golden: %w", err)
	}
	return verifySearch(im)
}

// replaceable allows a path that does not exist, an empty folder, and an older export folder.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w (%w): choose another folder with --out", dir, ErrFolder, err)
	case len(entries) == 0:
		return nil
	}
	m := manifestAt(dir)
	if m == nil {
		return fmt.Errorf("%s exists and is %w (no %s of ours): choose another folder with --out, or remove it", dir, ErrFolder, ManifestFile)
	}
	for _, e := range entries {
		if _, ours := m.Files[e.Name()]; !ours && e.Name() != ManifestFile {
			return fmt.Errorf("%s is an export folder with something more in it (%s), which would be lost; it is %w to replace: move that file, or choose another folder with --out",
				dir, e.Name(), ErrFolder)
		}
	}
	return nil
}

// ReadManifest reads the manifest of an export folder. The error wraps [ErrFolder] when there is none of ours.
func ReadManifest(dir string) (*Manifest, error) {
	if m := manifestAt(dir); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("%s is %w: it has no %s that chiplm export wrote", dir, ErrFolder, ManifestFile)
}

// manifestAt reads the manifest of an export folder; nil when there is none of ours.
func manifestAt(dir string) *Manifest {
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if err != nil || json.Unmarshal(text, &m) != nil || m.Kind != manifestKind {
		return nil
	}
	return &m
}

// importFolder is where an import goes when the user names no folder. An import of the same file there is replaced, and the
// note says so; any other export is refused with [ErrOther].
func importFolder(name, target, fileHash string) (dir, note string, err error) {
	dir = filepath.Join(exportsFolder, name+"-"+target)
	switch old := manifestAt(dir); {
	case old == nil:
		return dir, "", nil
	case old.Imported == "" || old.ModelHash != fileHash:
		return "", "", fmt.Errorf("%s %w: it was made from another model: choose another folder with --out, or another name with --name", dir, ErrOther)
	}
	return dir, dir + ": replaced the import of the same file", nil
}

// defaultFolder is where an export goes when the user names no folder. An export of the same run there, of whatever step
// or quantisation, may be replaced, and the note says so; one of another run or model is refused with [ErrOther]. from
// says what is exported: run and hashes, of which the tokenizer's may be unknown.
func defaultFolder(model, target string, from Manifest) (dir, note string, err error) {
	dir = filepath.Join(exportsFolder, model+"-"+target)
	old := manifestAt(dir)
	if old == nil {
		return dir, "", nil // nothing of ours: Write takes it from here
	}
	what := ""
	switch {
	case old.Model != model || old.Target != target:
		what = fmt.Sprintf("of the model %s for %s", old.Model, old.Target)
	case old.Run != from.Run:
		what = fmt.Sprintf("of the run %q, this checkpoint is of %q", old.Run, from.Run)
	case old.CorpusHash != from.CorpusHash || from.TokenizerHash != "" && old.TokenizerHash != from.TokenizerHash:
		what = fmt.Sprintf("of another run %q, with another corpus or tokenizer", old.Run)
	}
	if what != "" {
		return "", "", fmt.Errorf("%s %w: %s: choose another folder with --out", dir, ErrOther, what)
	}
	return dir, fmt.Sprintf("%s: replaced the export of step %s", dir, digits.Comma(old.Step)), nil
}

// swap renames tmp to dir. An older folder there changes places with it in one step where the system can do so, so that
// a kill leaves one of the two; elsewhere it steps aside and comes back when the rename fails. It is removed last.
func swap(tmp, dir string) error {
	if exchange(tmp, dir) == nil {
		return os.RemoveAll(tmp)
	}
	old := tmp + ".old"
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("export: %w", err)
	}
	had := err == nil
	if err := os.Rename(tmp, dir); err != nil {
		if had {
			err = errors.Join(err, os.Rename(old, dir))
		}
		return fmt.Errorf("export: %w", err)
	}
	if had {
		return os.RemoveAll(old)
	}
	return nil
}

func hashFiles(dir string) (map[string]FileHash, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	out := map[string]FileHash{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		out[e.Name()] = FileHash{int64(len(b)), hex.EncodeToString(sum[:])}
	}
	return out, nil
}

// syncDir makes renames within a folder last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("export: sync %s: %w", dir, err)
	}
	return nil
}
