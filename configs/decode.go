package configs

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// overridable are the classes that quant.classes may name.
var overridable = []TensorClass{ClassTrunk, ClassEmbedding, ClassHead, ClassPLETable, ClassNgramTable}

var (
	numberForm  = regexp.MustCompile(`^[-+]?([0-9][0-9_]*(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
	integerForm = regexp.MustCompile(`^[-+]?[0-9][0-9_]*$`)
)

// decode writes the values of a tree into the struct v and refuses keys that the struct does not have. The struct tags
// of [Config] are the one list of known keys. section is the dotted key of v.
func decode(n *node, v reflect.Value, section string) error {
	if n.null {
		return n.at.errorf(section, "has no value; give one or remove the key")
	}
	if !n.mapping {
		return n.at.errorf(section, "want keys (%s), have %s", strings.Join(keysOf(v.Type()), ", "), quote(n.text))
	}
	for _, e := range n.entries {
		field, ok := fieldOf(v, e.key)
		if !ok {
			return e.at.errorf(join(section, e.key), "%s", unknownKey(section, e.key, keysOf(v.Type())))
		}
		if err := decodeValue(e.value, field, join(section, e.key)); err != nil {
			return err
		}
	}
	return nil
}

func decodeValue(n *node, v reflect.Value, key string) error {
	switch v.Kind() {
	case reflect.Struct:
		return decode(n, v, key)
	case reflect.Map:
		return decodeClasses(n, v, key)
	}
	if n.null {
		return n.at.errorf(key, "has no value; give one or remove the key")
	}
	if n.mapping {
		return n.at.errorf(key, "want %s, have a group of keys", wanted(v.Type()))
	}
	mismatch := func() error { return n.at.errorf(key, "want %s, have %s", wanted(v.Type()), quote(n.text)) }
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if err := decodeValue(n, p.Elem(), key); err != nil {
			return err
		}
		v.Set(p)
	case reflect.String:
		plainNumber := numberForm.MatchString(n.text) || n.text == "true" || n.text == "false"
		if !n.quoted && plainNumber {
			return n.at.errorf(key, "want text, have %s; put it in quotes if it is meant as text", n.text)
		}
		v.SetString(n.text)
	case reflect.Bool:
		if n.quoted || n.text != "true" && n.text != "false" {
			return mismatch()
		}
		v.SetBool(n.text == "true")
	case reflect.Int, reflect.Int64:
		i, ok := parseInteger(n)
		if !ok {
			return mismatch()
		}
		v.SetInt(i)
	case reflect.Float64:
		f, ok := parseNumber(n)
		if !ok {
			return mismatch()
		}
		v.SetFloat(f)
	default:
		panic("configs: no rule for a field of type " + v.Type().String()) // a programming error, caught by every test
	}
	return nil
}

func decodeClasses(n *node, v reflect.Value, key string) error {
	var names []string
	for _, c := range overridable {
		names = append(names, string(c))
	}
	if n.null || !n.mapping {
		return n.at.errorf(key, "want tensor classes (%s), each with bits, group, scale or clip", strings.Join(names, ", "))
	}
	classes := map[TensorClass]ClassRule{}
	for _, e := range n.entries {
		full := join(key, e.key)
		switch class := TensorClass(e.key); class {
		case ClassNorm, ClassRouter:
			return e.at.errorf(full, "tensors of class %s are float32 always; remove the key", class)
		case ClassTrunk, ClassEmbedding, ClassHead, ClassPLETable, ClassNgramTable:
			var rule ClassRule
			if err := decode(e.value, reflect.ValueOf(&rule).Elem(), full); err != nil {
				return err
			}
			classes[class] = rule
		default:
			return e.at.errorf(full, "%s", unknownKey(key, e.key, names))
		}
	}
	if len(classes) > 0 {
		v.Set(reflect.ValueOf(classes))
	}
	return nil
}

// parseInteger reads decimal digits, with _ between them if wanted, or a number such as 4e6 that is whole.
func parseInteger(n *node) (int64, bool) {
	if n.quoted {
		return 0, false
	}
	if integerForm.MatchString(n.text) {
		i, err := strconv.ParseInt(strings.ReplaceAll(n.text, "_", ""), 10, 64)
		return i, err == nil
	}
	f, ok := parseNumber(n)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// parseNumber reads a finite decimal number.
func parseNumber(n *node) (float64, bool) {
	if n.quoted || !numberForm.MatchString(n.text) {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64)
	return f, err == nil && !math.IsInf(f, 0)
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a finite number"
	}
	return "text"
}

// fieldOf finds the field of a struct by its YAML key.
func fieldOf(v reflect.Value, key string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == key {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		keys = append(keys, t.Field(i).Tag.Get("yaml"))
	}
	return keys
}

// unknownKey words the refusal of a key: a slip of the pen in this section, or a key that lives in another one.
func unknownKey(section, key string, siblings []string) string {
	all := allKeys(reflect.TypeFor[Config](), "")
	if full := join(section, key); strings.Contains(key, ".") && slices.Contains(all, full) {
		parts := strings.Split(key, ".")
		last := len(parts) - 1
		return fmt.Sprintf("keys with dots are for --set and sweeps alone; a model file has sections: write %s: {%s: ...}%s",
			strings.Join(parts[:last], ": {"), parts[last], strings.Repeat("}", last-1))
	}
	if near := Nearest(key, siblings); near != "" && !slices.Contains(all, key) {
		return "unknown key; did you mean " + join(section, near) + "?"
	}
	for _, full := range all {
		if full == key || strings.HasSuffix(full, "."+key) {
			if i := strings.LastIndex(full, "."); i >= 0 {
				return "unknown key here; did you mean " + full + ", in the section " + full[:i] + "?"
			}
			return "unknown key here; did you mean " + full + ", outside any section?"
		}
	}
	if near := Nearest(join(section, key), all); near != "" {
		return "unknown key; did you mean " + near + "?"
	}
	return "unknown key; known here: " + strings.Join(siblings, ", ")
}

// allKeys lists the dotted keys of a struct's values, sections left out.
func allKeys(t reflect.Type, section string) []string {
	var keys []string
	for i := range t.NumField() {
		full := join(section, t.Field(i).Tag.Get("yaml"))
		switch f := t.Field(i).Type; f.Kind() {
		case reflect.Struct:
			keys = append(keys, allKeys(f, full)...)
		case reflect.Map:
			for _, c := range overridable {
				keys = append(keys, allKeys(f.Elem(), join(full, string(c)))...)
			}
		default:
			keys = append(keys, full)
		}
	}
	return keys
}
