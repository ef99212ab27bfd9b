package configs

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/data/regular"
)

// Value is a part of a YAML file that is no model file but speaks of some, such as the file of a sweep. It reads the same
// small part of YAML, and lists; its errors are of type [*Error] and tell where in the file the value is.
type Value struct {
	n    *node
	key  string   // dotted, for messages
	own  string   // the last part of key, whole; it may have dots of its own
	name position // of the key
}

// OpenValue reads a file whole. kind is what messages call such a file: "file of a sweep".
func OpenValue(kind, path string) (*Value, error) {
	text, err := regular.ReadFile(path, maxBytes)
	if errors.Is(err, regular.ErrTooLarge) {
		return nil, dialect{file: kind}.tooLarge(position{source: path})
	}
	if err != nil {
		return nil, err
	}
	return ParseValue(kind, path, text)
}

// ParseValue is [OpenValue] of a text. name stands in messages.
func ParseValue(kind, name string, text []byte) (*Value, error) {
	at := position{source: name}
	n, err := dialect{file: kind, lists: true}.parse(at, text, "")
	if err != nil {
		return nil, err
	}
	return &Value{n: n, name: at}, nil
}

// Errorf is an error about the value, at its place.
func (v *Value) Errorf(format string, args ...any) *Error {
	return v.n.at.errorf(v.key, format, args...)
}

// NameErrorf is an error about the key of the value, at the place of that.
func (v *Value) NameErrorf(format string, args ...any) *Error {
	return v.name.errorf(v.key, format, args...)
}

// Wrap puts the place of the value before an error.
func (v *Value) Wrap(err error) error { return v.n.at.wrap(v.key, err) }

// Name is the value's own key, without those of the sections around it.
func (v *Value) Name() string { return v.own }

// Keys gives the values of a mapping in the order of the file. With known keys, it refuses others and names the nearest.
func (v *Value) Keys(known ...string) ([]*Value, error) {
	what := "keys with values"
	if len(known) > 0 {
		what = "keys (" + strings.Join(known, ", ") + ")"
	}
	switch {
	case v.n.null:
		return nil, v.Errorf("is empty; want %s", what)
	case !v.n.mapping:
		return nil, v.Errorf("want %s, have %s", what, v.n.shown())
	}
	var all []*Value
	for _, e := range v.n.entries {
		value := &Value{n: e.value, key: join(v.key, e.key), own: e.key, name: e.at}
		if len(known) > 0 && !slices.Contains(known, e.key) {
			if near := Nearest(e.key, known); near != "" {
				return nil, value.NameErrorf("unknown key; did you mean %s?", join(v.key, near))
			}
			return nil, value.NameErrorf("unknown key; known here: %s", strings.Join(known, ", "))
		}
		all = append(all, value)
	}
	return all, nil
}

// Items gives the values of a list.
func (v *Value) Items() ([]*Value, error) {
	if !v.n.list {
		return nil, v.Errorf("want a list, such as [1, 2], have %s", v.n.shown())
	}
	var all []*Value
	for _, n := range v.n.items {
		all = append(all, &Value{n: n, key: v.key, own: v.own, name: v.name})
	}
	return all, nil
}

// Text gives a text.
func (v *Value) Text() (string, error) {
	switch {
	case v.n.null || v.n.mapping || v.n.list || v.n.text == "":
		return "", v.Errorf("want text, have %s", v.n.shown())
	case !v.n.quoted && (numberForm.MatchString(v.n.text) || v.n.text == "true" || v.n.text == "false"):
		return "", v.Errorf("want text, have %s; put it in quotes if it is meant as text", v.n.text)
	}
	return v.n.text, nil
}

// Integer gives a whole number from low to high.
func (v *Value) Integer(low, high int64) (int64, error) {
	i, ok := parseInteger(v.n)
	if !ok || v.n.null || v.n.mapping || v.n.list {
		return 0, v.Errorf("want a whole number, have %s", v.n.shown())
	}
	if i < low || i > high {
		return 0, v.Errorf("want %d to %d, have %d", low, high, i)
	}
	return i, nil
}

// shown is the value for a message.
func (n *node) shown() string {
	switch {
	case n.null:
		return "nothing"
	case n.mapping:
		return "a group of keys"
	case n.list:
		return "a list"
	}
	return quote(n.text)
}

// Override changes keys of model files.
type Override struct{ tree *node }

// Override reads the value as keys of a model file with their values. A key may be dotted, as that of a --set. One that is
// given twice is refused however it is written, as no order is meant.
func (v *Value) Override() (Override, error) {
	if v.n.null || !v.n.mapping {
		return Override{}, v.Errorf("want keys of the model file with their values, such as {train.lr: 0.003}, have %s", v.n.shown())
	}
	tree := &node{at: v.n.at, mapping: true}
	return Override{tree}, v.n.spread(tree, v.key)
}

// spread lays a mapping over into, with its dotted keys taken apart.
func (n *node) spread(into *node, section string) error {
	for _, e := range n.entries {
		key := join(section, e.key)
		parts := strings.Split(e.key, ".")
		switch {
		case slices.Contains(parts, "extends"):
			return e.at.errorf(key, "cannot be set here; name the other file with config")
		case slices.Contains(parts, ""), len(parts) > maxNested:
			return e.at.errorf(key, "no key of a model file; write it as train.lr")
		case e.value.list:
			return e.value.at.errorf(key, "no key of a model file takes a list")
		}
		value := e.value
		if value.mapping {
			value = &node{at: e.value.at, mapping: true}
			if err := e.value.spread(value, key); err != nil {
				return err
			}
		}
		for i := len(parts) - 1; i >= 0; i-- {
			value = &node{at: e.at, mapping: true, entries: []entry{{key: parts[i], at: e.at, value: value}}}
		}
		if before, again, at := clash(into, value); before != nil {
			return again.errorf(join(section, at), "given twice, first on line %d; keep one", before.line)
		}
		into.merge(value)
	}
	return nil
}

// clash finds a key that both trees give a value, sections that may be merged aside: where each gives it, and its dotted key.
func clash(a, b *node) (first, second *position, key string) {
	for _, e := range b.entries {
		for i := range a.entries {
			before := &a.entries[i]
			switch {
			case before.key != e.key:
			case !before.value.mapping || !e.value.mapping:
				return &before.at, &e.at, e.key
			default:
				if first, second, key = clash(before.value, e.value); first != nil {
					return first, second, join(e.key, key)
				}
			}
		}
	}
	return nil, nil, ""
}

// Has says whether a dotted key is overridden.
func (o Override) Has(key string) bool {
	n := o.tree
	for _, part := range strings.Split(key, ".") {
		if n == nil || !n.mapping {
			return false
		}
		n = n.get(part)
	}
	return n != nil
}

// ranked is a copy of the tree with the positions of a later layer.
func (n *node) ranked(rank int) *node {
	out := *n
	out.at.rank = rank
	out.entries = slices.Clone(n.entries)
	for i := range out.entries {
		e := &out.entries[i]
		e.at.rank = rank
		e.value = e.value.ranked(rank)
	}
	return &out
}

// LoadOver is [Load] of a name that is relative to a folder, with overrides in order.
func LoadOver(nameOrPath, folder string, overrides ...Override) (*Config, error) {
	if folder != "" {
		folder = filepath.Clean(folder)
	}
	src, err := find(nameOrPath, folder)
	if err != nil {
		return nil, err
	}
	return resolveOver(src, len(overrides), func(i int) (*node, error) { return overrides[i].tree.ranked(i + 1), nil })
}
