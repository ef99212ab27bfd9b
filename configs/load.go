package configs

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/data/regular"
)

//go:embed *.yaml
var builtin embed.FS

// Builtin lists the names of the model files built into the program, such as combo.yaml, in order.
func Builtin() []string {
	entries, err := builtin.ReadDir(".")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// BuiltinSource gives the text of a built-in model file, comments and all.
func BuiltinSource(name string) ([]byte, error) {
	text, err := builtin.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("no built-in model file %s; there are %s", quote(name), strings.Join(Builtin(), ", "))
	}
	return text, nil
}

// maxExtends is how many files may inherit from one another.
const maxExtends = 16

// Load reads a model file and checks it. A file on disk comes first, then a built-in one; combo means combo.yaml. Each
// of sets is a KEY=VALUE override with a dotted key and a YAML value, such as train.lr=0.003, applied in order.
// Errors are of type [*Error], or wrap [fs.ErrNotExist] when there is no such file.
func Load(nameOrPath string, sets ...string) (*Config, error) {
	src, err := find(nameOrPath, "")
	if err != nil {
		return nil, err
	}
	return resolve(src, sets)
}

// Parse reads a model file from memory. name stands in messages, gives the default for the model's name, and is what
// extends is relative to.
func Parse(name string, text []byte, sets ...string) (*Config, error) {
	return resolve(source{shown: name, identity: identityOf(name), directory: filepath.Dir(name), text: text}, sets)
}

// source is the text of a model file and where it came from.
type source struct {
	shown     string // for messages
	identity  string // equal for the same file: this is how a cycle is found
	directory string // what extends is relative to; "" for a built-in file
	text      []byte
}

func identityOf(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// find looks for a model file: on disk, then among the built-in ones. A name starting with builtin: skips the disk.
func find(name, directory string) (source, error) {
	onlyBuiltin, isBuiltin := strings.CutPrefix(name, "builtin:")
	var folder error
	if !isBuiltin {
		paths := []string{name}
		if filepath.Ext(name) == "" {
			paths = append(paths, name+".yaml")
		}
		for i, path := range paths {
			if directory != "" && !filepath.IsAbs(path) {
				path = filepath.Join(directory, path)
			}
			text, err := readFile(path)
			switch {
			case err == nil:
				return source{shown: path, identity: identityOf(path), directory: filepath.Dir(path), text: text}, nil
			case errors.Is(err, errFolder) && i+1 < len(paths):
				folder = err // a run's folder may be called combo too
			case !errors.Is(err, fs.ErrNotExist):
				return source{}, err
			}
		}
		onlyBuiltin = name
	}
	for _, b := range Builtin() {
		if b == onlyBuiltin || b == onlyBuiltin+".yaml" {
			text, err := BuiltinSource(b)
			return source{shown: b + " (built in)", identity: "builtin:" + b, text: text}, err
		}
	}
	if folder != nil {
		return source{}, folder
	}
	if !isBuiltin && strings.ContainsRune(name, filepath.Separator) { // a path: no built-in file is meant
		what := "mend the path"
		if base := filepath.Base(name); slices.Contains(Builtin(), base) {
			what += ", or write builtin:" + base + " for the built-in file"
		}
		return source{}, regular.Absentf("there is no model file %s; %s", quote(name), what)
	}
	// The name of a built-in file is near at hand, or else all are told.
	if near := Nearest(onlyBuiltin, Builtin()); near != "" {
		return source{}, regular.Absentf("no model file %s on disk, nor built in; did you mean %s?", quote(name), near)
	}
	return source{}, regular.Absentf("no model file %s on disk, nor built in; built in are %s", quote(name), strings.Join(Builtin(), ", "))
}

var errFolder = errors.New("is a folder, not a model file; name the .yaml file in it")

func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: %w", path, errFolder)
	}
	text, err := regular.ReadFile(path, maxBytes)
	switch {
	case errors.Is(err, regular.ErrKind):
		return nil, &Error{Source: path, Problem: "is not a regular file; name a .yaml file"}
	case errors.Is(err, regular.ErrTooLarge):
		return nil, modelFile.tooLarge(position{source: path})
	case err != nil:
		return nil, fmt.Errorf("model file: %w", err)
	}
	return text, nil
}

// resolve lays defaults, inherited files, the file and the overrides over one another, and checks the result.
func resolve(src source, sets []string) (*Config, error) {
	return resolveOver(src, len(sets), func(i int) (*node, error) { return parseSet(sets[i], i+1) })
}

// resolveOver is resolve with n overrides, of which over gives the i-th with positions of rank i+1.
func resolveOver(src source, n int, over func(i int) (*node, error)) (*Config, error) {
	tree, err := layers(src, nil)
	if err != nil {
		return nil, err
	}
	for i := range n {
		over, err := over(i)
		if err != nil {
			return nil, err
		}
		if err := tryDecode(over); err != nil {
			return nil, err
		}
		tree.merge(over)
	}
	c := Defaults()
	c.Name = defaultName(src.shown)
	if err := decode(tree, reflect.ValueOf(c).Elem(), ""); err != nil {
		return nil, err
	}
	var missing []string
	for _, key := range Required() {
		if tree.get(key) == nil {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		return nil, &Error{Source: src.shown, Key: missing[0],
			Problem: fmt.Sprintf("missing: %s; give a value, or inherit them with extends: combo.yaml", strings.Join(missing, ", "))}
	}
	if f := c.check(); f != nil {
		return nil, f.locate(tree, src)
	}
	return c, nil
}

// layers reads src and what it extends, and gives the merged tree. chain holds the files that led here, the first one
// first.
func layers(src source, chain []source) (*node, error) {
	chain = append(chain, src)
	tree, err := parseTree(position{source: src.shown, rank: -len(chain)}, src.text, "")
	if err != nil {
		return nil, err
	}
	if tree.null {
		return nil, &Error{Source: src.shown, Problem: "is empty; give " + strings.Join(Required(), ", ") + ", or extends: combo.yaml"}
	}
	if !tree.mapping {
		return nil, tree.at.errorf("", "want key: value, have %s", quote(tree.text))
	}
	extends := tree.get("extends")
	tree.remove("extends")
	if err := tryDecode(tree); err != nil {
		return nil, err
	}
	if extends == nil {
		return tree, nil
	}
	if extends.null || extends.mapping || extends.text == "" {
		return nil, extends.at.errorf("extends", "want the name of one model file, such as combo.yaml")
	}
	base, err := find(extends.text, src.directory)
	if err != nil {
		return nil, extends.at.wrap("extends", err)
	}
	chain = slices.Clip(chain)
	names := make([]string, 0, len(chain)+1)
	for _, s := range chain {
		names = append(names, s.shown)
	}
	names = append(names, base.shown)
	if slices.ContainsFunc(chain, func(s source) bool { return s.identity == base.identity }) {
		hint := ""
		if slices.Contains(Builtin(), filepath.Base(base.shown)) {
			hint = ", or write builtin:" + filepath.Base(base.shown) + " for the built-in file"
		}
		return nil, extends.at.errorf("extends", "the files inherit in a circle: %s; remove one extends%s", strings.Join(names, " -> "), hint)
	}
	if len(chain) >= maxExtends {
		return nil, extends.at.errorf("extends", "more than %d files inherit from one another: %s", maxExtends, strings.Join(names, " -> "))
	}
	merged, err := layers(base, chain)
	if err != nil {
		return nil, err
	}
	merged.remove("name") // a variation is not the model that it varies, and has a run folder of its own
	merged.merge(tree)
	return merged, nil
}

// tryDecode finds wrong keys and types in one layer, also those that a later layer replaces.
func tryDecode(tree *node) error { return decode(tree, reflect.ValueOf(&Config{}).Elem(), "") }

// locate turns a broken rule into an error at the place of the key that the user set last.
func (f *fault) locate(tree *node, src source) error {
	at, key := position{source: src.shown, rank: -maxExtends - 1}, f.keys[0]
	for _, k := range f.keys {
		n := tree
		for _, part := range strings.Split(k, ".") {
			if n = n.get(part); n == nil {
				break
			}
		}
		if n != nil && n.at.rank > at.rank {
			at, key = n.at, k
		}
	}
	return at.errorf(key, "%s", f.problem)
}

func (p position) wrap(key string, err error) error {
	return fmt.Errorf("%s%w", p.errorf(key, "").Error(), err)
}

// defaultName makes a name that may be a folder's from a file's.
func defaultName(path string) string {
	stem := filepath.Base(strings.TrimSuffix(path, " (built in)"))
	stem = strings.TrimSuffix(stem, filepath.Ext(stem))
	stem = strings.Map(func(r rune) rune {
		if r < 0x80 && nameForm.MatchString("a"+string(r)) {
			return r
		}
		return '-'
	}, stem)
	stem = strings.TrimLeft(stem, ".-")
	if len(stem) > 64 {
		stem = stem[:64]
	}
	if stem == "" {
		return "model"
	}
	return stem
}
