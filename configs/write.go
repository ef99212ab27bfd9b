package configs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Setting is one resolved key of a model file, such as train.lr, and its value as YAML text.
type Setting struct{ Key, Value string }

// Settings lists every key of the configuration, those with defaults too, in the order of [Config]'s fields.
func (c *Config) Settings() ([]Setting, error) {
	var all []Setting
	err := walk(reflect.ValueOf(c).Elem(), "", func(s Setting) { all = append(all, s) })
	return all, err
}

// YAML gives the resolved model file: every key written out, no comments, in a fixed order and form that does not
// depend on a YAML library. Equal configurations give equal bytes, and [Parse] reads them back to an equal one.
func (c *Config) YAML() ([]byte, error) {
	var b strings.Builder
	section := []string{}
	err := walk(reflect.ValueOf(c).Elem(), "", func(s Setting) {
		parts := strings.Split(s.Key, ".")
		for i, p := range parts[:len(parts)-1] {
			if i < len(section) && section[i] == p {
				continue
			}
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), p)
			section = append(section[:i:i], p)
		}
		section = section[:min(len(section), len(parts)-1)]
		fmt.Fprintf(&b, "%s%s: %s\n", strings.Repeat("  ", len(parts)-1), parts[len(parts)-1], s.Value)
	})
	if err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}

// Hash is the SHA-256 of [Config.YAML] in hex. It panics for a configuration that has no YAML form (a NaN), which
// [Config.Validate] refuses.
func (c *Config) Hash() string {
	text, err := c.YAML()
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// TrainHash is the hash of the settings that decide the trained weights, in the same form as [Config.Hash]. Two runs
// over the same corpus with equal hashes are the same run, so a resume may change what is left out: name, and of train
// valid_every, valid_tokens, sample_every, save_every and keep_last. train.tokens stays in: the learning rate at a step
// depends on how many steps there will be.
func (c *Config) TrainHash() string {
	same := *c
	same.Name = ""
	t := &same.Train
	t.ValidEvery, t.ValidTokens, t.SampleEvery, t.SaveEvery, t.KeepLast = 0, 0, 0, 0, 0
	return same.Hash()
}

// Difference is a key on which two configurations disagree; a side that lacks the key (a class rule) is empty.
type Difference struct {
	Key string `json:"key"`
	A   string `json:"a"`
	B   string `json:"b"`
}

// Differences lists the keys whose values differ, in the order of the fields.
func Differences(a, b *Config) ([]Difference, error) {
	as, err := a.Settings()
	if err != nil {
		return nil, err
	}
	bs, err := b.Settings()
	if err != nil {
		return nil, err
	}
	inB := map[string]string{}
	for _, s := range bs {
		inB[s.Key] = s.Value
	}
	var out []Difference
	inA := map[string]bool{}
	for _, s := range as {
		inA[s.Key] = true
		if inB[s.Key] != s.Value {
			out = append(out, Difference{s.Key, s.Value, inB[s.Key]})
		}
	}
	for _, s := range bs {
		if !inA[s.Key] {
			out = append(out, Difference{s.Key, "", s.Value})
		}
	}
	return out, nil
}

// walk visits the values under v in the order of the fields.
func walk(v reflect.Value, section string, visit func(Setting)) error {
	for i := range v.NumField() {
		key, field := join(section, v.Type().Field(i).Tag.Get("yaml")), v.Field(i)
		switch field.Kind() {
		case reflect.Struct:
			if err := walk(field, key, visit); err != nil {
				return err
			}
		case reflect.Map:
			classes := field.Interface().(map[TensorClass]ClassRule)
			any := false
			for _, class := range overridable {
				rule, ok := classes[class]
				if !ok || rule == (ClassRule{}) {
					continue
				}
				any = true
				if err := walk(reflect.ValueOf(rule), join(key, string(class)), visit); err != nil {
					return err
				}
			}
			if !any {
				visit(Setting{key, "{}"})
			}
		case reflect.Pointer:
			if field.IsNil() {
				continue
			}
			text, err := scalar(field.Elem(), key)
			if err != nil {
				return err
			}
			visit(Setting{key, text})
		default:
			text, err := scalar(field, key)
			if err != nil {
				return err
			}
			visit(Setting{key, text})
		}
	}
	return nil
}

func scalar(v reflect.Value, key string) (string, error) {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Float64:
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return "", &Error{Key: key, Problem: fmt.Sprintf("want a finite number, have %g", f)}
		}
		text := strconv.FormatFloat(f, 'g', -1, 64)
		// 1e-06 is text to a YAML 1.1 reader; 1.0e-06 is a number to all.
		if mantissa, exponent, ok := strings.Cut(text, "e"); ok && !strings.Contains(mantissa, ".") {
			text = mantissa + ".0e" + exponent
		}
		return text, nil
	}
	s := v.String()
	if nameForm.MatchString(s) && !ambiguous(s) {
		return s, nil
	}
	return strconv.Quote(s), nil
}

// ambiguous texts would be read as something else by some YAML reader, so they are written in quotes.
func ambiguous(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null", "":
		return true
	}
	return s[0] >= '0' && s[0] <= '9' || s[0] == '.' || s[0] == '_'
}
