package released

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/configs"
)

//go:embed models
var embedded embed.FS

// DefaultRoot is where the models that a build embeds are kept, relative to the repository.
const DefaultRoot = "checkpoints/released/models"

// Prefix before a name means the released model, whatever runs there are: released/combo.
const Prefix = "released/"

// firstChoice is the model that a newcomer gets.
const firstChoice = "combo"

// Errors of this package.
var (
	// ErrUnknown occurs when no released model has a name.
	ErrUnknown = errors.New("no such released model")
	// ErrDamaged occurs when a file of a released model is missing or is not the one that was released.
	ErrDamaged = errors.New("the released model is damaged")
	// ErrVersion occurs when a newer chiplm wrote the release.
	ErrVersion = errors.New("the released model is of a newer format")
)

// Store is a number of released models: those of the program, or of another file system.
type Store struct{ files fs.FS }

// Embedded are the models that the program carries.
func Embedded() *Store {
	files, err := fs.Sub(embedded, "models")
	if err != nil {
		panic(err) // "models" is a valid path
	}
	return New(files)
}

// New makes a store of a file system with a folder for each model.
func New(files fs.FS) *Store { return &Store{files} }

type key struct{}

// With gives a context other released models than those of the program, such as a test's.
func With(ctx context.Context, s *Store) context.Context { return context.WithValue(ctx, key{}, s) }

// From is the store of a context: as [With] put it there, else [Embedded].
func From(ctx context.Context) *Store {
	if s, ok := ctx.Value(key{}).(*Store); ok {
		return s
	}
	return Embedded()
}

// Model is a released model whose files were found to be those that were released.
type Model struct {
	Facts
	Source    string // released/NAME, or the folder
	Image     []byte
	Config    []byte // YAML
	Tokenizer []byte // tokenizer.json
}

// Names lists the models in order of their names.
func (s *Store) Names() []string {
	found, err := fs.Glob(s.files, "*/"+FactsFile)
	if err != nil {
		panic(err) // the pattern is well formed
	}
	for i, path := range found {
		found[i] = strings.TrimSuffix(path, "/"+FactsFile)
	}
	slices.Sort(found)
	return found
}

// Default is the model that is used where none is named and nothing was trained; "" when there is none.
func (s *Store) Default() string {
	names := s.Names()
	switch {
	case len(names) == 0:
		return ""
	case slices.Contains(names, firstChoice):
		return firstChoice
	}
	return names[0]
}

// Open reads a model and compares every hash. Errors wrap [ErrUnknown], [ErrDamaged] or [ErrVersion].
func (s *Store) Open(name string) (*Model, error) {
	names := s.Names()
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("%s: %w: %s", name, ErrUnknown, advice(name, names))
	}
	files, err := fs.Sub(s.files, name)
	if err != nil {
		return nil, fmt.Errorf("released model %s: %w", name, err)
	}
	m, err := read(files, name, Prefix+name)
	if err != nil {
		return nil, fmt.Errorf("%w: get the program again, or build it from a whole checkout", err)
	}
	return m, nil
}

// advice says which of the released models may be meant.
func advice(name string, names []string) string {
	if len(names) == 0 {
		return "this program carries none"
	}
	if near := configs.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "there are " + strings.Join(names, ", ")
}

// IsFolder says whether a path is the folder of a released model.
func IsFolder(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, FactsFile))
	return err == nil
}

// OpenFolder reads the released model in a folder, as [Store.Open] does.
func OpenFolder(dir string) (*Model, error) {
	return read(os.DirFS(dir), "", dir)
}

// mostFacts is the largest facts file in bytes.
const mostFacts = 1 << 20

// read reads a model from its folder; name is what it must be called, or empty.
func read(files fs.FS, name, source string) (*Model, error) {
	text, err := readFile(files, FactsFile, mostFacts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", source, ErrDamaged, err)
	}
	m := &Model{Source: source}
	if err := m.Facts.decode(text); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	if name != "" && m.Name != name {
		return nil, fmt.Errorf("%s: %w: %s is that of %q", source, ErrDamaged, FactsFile, m.Name)
	}
	var card []byte
	for file, into := range map[string]*[]byte{ImageFile: &m.Image, ConfigFile: &m.Config, TokenizerFile: &m.Tokenizer, CardFile: &card} {
		want := m.Files[file]
		if *into, err = readFile(files, file, want.Bytes); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", source, ErrDamaged, err)
		}
		if FileOf(*into) != want {
			return nil, fmt.Errorf("%s: %w: %s is not the file that was released (its SHA-256 differs)", source, ErrDamaged, file)
		}
	}
	return m, nil
}

// decode reads the facts. Unknown fields are passed over: a change that matters raises the version.
func (f *Facts) decode(text []byte) error {
	if err := json.Unmarshal(text, f); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, FactsFile, err)
	}
	switch {
	case f.Kind != Kind || f.Version < 1:
		return fmt.Errorf("%w: %s is none that chiplm release wrote", ErrDamaged, FactsFile)
	case f.Version > Version:
		return fmt.Errorf("%w: version %d, this chiplm reads up to %d; use a newer chiplm", ErrVersion, f.Version, Version)
	case !ValidName(f.Name):
		return fmt.Errorf("%w: %s has the name %q", ErrDamaged, FactsFile, f.Name)
	case len(f.Files) != len(hashed):
		return fmt.Errorf("%w: %s lists %d files, a release has %d", ErrDamaged, FactsFile, len(f.Files), len(hashed))
	}
	for _, name := range hashed {
		if f.Files[name].SHA256 == "" {
			return fmt.Errorf("%w: %s lists no %s", ErrDamaged, FactsFile, name)
		}
	}
	return nil
}

// FileOf is the size and hash of a file's content.
func FileOf(content []byte) File {
	sum := sha256.Sum256(content)
	return File{int64(len(content)), hex.EncodeToString(sum[:])}
}

// readFile reads a file of at most limit bytes, and one byte more of a longer one.
func readFile(files fs.FS, name string, limit int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no regular file", name), err)
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
