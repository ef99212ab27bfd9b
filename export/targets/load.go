package targets

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/chiplm/chiplm/data/regular"
)

//go:embed *.yaml
var builtin embed.FS

// ErrTarget is wrapped by every refusal of a target file; the message starts with file, line and column.
var ErrTarget = errors.New("bad target file")

const maxFileBytes = 1 << 20

// Builtin names the targets that ship with chiplm.
func Builtin() []string {
	entries, _ := builtin.ReadDir(".") // cannot fail: the files are embedded
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	slices.Sort(names)
	return names
}

// Load finds a target: a built-in name such as esp32s3, or the path of a YAML file.
func Load(nameOrPath string) (*Target, error) {
	name := strings.TrimSuffix(nameOrPath, ".yaml")
	if slices.Contains(Builtin(), name) && (name == nameOrPath || !fileExists(nameOrPath)) {
		src, err := builtin.ReadFile(name + ".yaml")
		if err != nil {
			return nil, err
		}
		return Parse(name+".yaml", src)
	}
	f, err := regular.Open(nameOrPath)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, fmt.Errorf("no target %q: give one of %s, or the path of a target file",
				nameOrPath, strings.Join(Builtin(), ", "))
		}
		return nil, fmt.Errorf("read target: %w", err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read target %s: %w", nameOrPath, err)
	}
	return Parse(nameOrPath, src)
}

func fileExists(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.Mode().IsRegular()
}

// Parse reads a target file strictly: unknown keys, wrong types and impossible values are refused with their place.
// The name is for messages.
func Parse(name string, src []byte) (t *Target, err error) {
	if len(src) > maxFileBytes {
		return nil, fmt.Errorf("%w: %s: more than %d bytes", ErrTarget, name, maxFileBytes)
	}
	// The YAML library has panicked on malformed text before; such a text is a bad file, not a crash.
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("%w: %s: malformed YAML (%v)", ErrTarget, name, p)
		}
	}()
	t = new(Target)
	if err := yaml.NewDecoder(bytes.NewReader(src), yaml.Strict()).Decode(t); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrTarget, place(name, err))
	}
	if key, msg := t.validate(); msg != "" {
		return nil, fmt.Errorf("%w: %s%s: %s", ErrTarget, position(name, src, key), key, msg)
	}
	return t, nil
}

// place turns an error of the YAML library into name:line:column: message.
func place(name string, err error) string {
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil {
		p := y.GetToken().Position
		return fmt.Sprintf("%s:%d:%d: %s", name, p.Line, p.Column, y.GetMessage())
	}
	return fmt.Sprintf("%s: %v", name, err)
}

// position finds where a key such as memories[1].usable is written, or else the nearest key above it.
func position(name string, src []byte, key string) string {
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return name + ": "
	}
	for key != "" {
		if p, err := yaml.PathString("$." + key); err == nil {
			if node, err := p.FilterFile(file); err == nil && node != nil {
				return at(name, node)
			}
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return name + ": "
}

func at(name string, node ast.Node) string {
	if node.GetToken() == nil || node.GetToken().Position == nil {
		return name + ": "
	}
	p := node.GetToken().Position
	return fmt.Sprintf("%s:%d:%d: ", name, p.Line, p.Column)
}
