package bpe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// ErrUnsupported is in the chain of every error that refuses a tokenizer.json which is in order, but asks for something
// that this package does not do.
var ErrUnsupported = errors.New("not supported")

// Parse reads a Hugging Face tokenizer.json of the kind this package writes: a BPE model over bytes, GPT-2's splitting,
// <|endoftext|> the only added token. Merges may be "left right" or ["left", "right"]. Anything that would change the
// token ids is refused with the name of the field and with what is supported instead.
func Parse(b []byte) (*Tokenizer, error) {
	if !json.Valid(b) {
		var v any
		return nil, fmt.Errorf("tokenizer.json: not valid JSON: %w", json.Unmarshal(b, &v))
	}
	p := parser{eot: -1}
	required := map[string]func(string, json.RawMessage) error{
		"added_tokens":  p.addedTokens,
		"pre_tokenizer": p.preTokenizer,
		"model":         p.model,
	}
	optional := map[string]func(string, json.RawMessage) error{
		"version":        one("1.0"),
		"truncation":     null,
		"padding":        null,
		"normalizer":     null,
		"post_processor": byteLevelOrNull,
		"decoder":        byteLevelOrNull,
	}
	if err := p.object("", b, required, optional); err != nil {
		return nil, err
	}
	return p.build()
}

type parser struct {
	eot    int32
	vocab  map[string]int32
	merges [][2]string
}

// object hands each member of a JSON object to its check. Members of unknown names are refused, since they may mean
// anything, and so is an object in which a required one is missing.
func (p *parser) object(field string, raw json.RawMessage, required, optional map[string]func(string, json.RawMessage) error) error {
	list, err := members(field, raw)
	if err != nil {
		return err
	}
	found := make(map[string]bool)
	for _, m := range list {
		check, ok := required[m.name]
		if !ok {
			check, ok = optional[m.name]
		}
		name := join(field, m.name)
		if !ok {
			return unsupported(name, "an unknown field", "remove it if it does not change the tokens")
		}
		if err := check(name, m.value); err != nil {
			return err
		}
		found[m.name] = true
	}
	for name := range required {
		if !found[name] {
			return fieldError(join(field, name), "is missing")
		}
	}
	return nil
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// unsupported refuses a value and says what there should be instead.
func unsupported(field, got, want string) error {
	if len(got) > 60 {
		got = got[:60] + "..."
	}
	return fmt.Errorf("tokenizer.json: field %q: %s is %w: %s", field, got, ErrUnsupported, want)
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// null accepts null alone.
func null(field string, raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	return unsupported(field, string(raw), "only null is")
}

// one accepts a single value: a string, or true or false.
func one[T string | bool](want T) func(string, json.RawMessage) error {
	return func(field string, raw json.RawMessage) error {
		var got *T
		if json.Unmarshal(raw, &got) != nil || got == nil || *got != want {
			text, _ := json.Marshal(want)
			return unsupported(field, string(raw), "only "+string(text)+" is")
		}
		return nil
	}
}

// flag accepts true and false, for fields that do not change the tokens.
func flag(field string, raw json.RawMessage) error {
	var got *bool
	if json.Unmarshal(raw, &got) != nil || got == nil {
		return fieldError(field, "must be true or false")
	}
	return nil
}

// noString accepts null and the empty string.
func noString(field string, raw json.RawMessage) error {
	if isNull(raw) || string(raw) == `""` {
		return nil
	}
	return unsupported(field, string(raw), "only null is")
}

// noDropout accepts null and 0.
func noDropout(field string, raw json.RawMessage) error {
	var got *float64
	if json.Unmarshal(raw, &got) != nil || got != nil && *got != 0 {
		return unsupported(field, string(raw), "only null is")
	}
	return nil
}

// byteLevelOrNull accepts the post-processors and decoders that leave the tokens as they are.
func byteLevelOrNull(field string, raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	var p parser
	return p.object(field, raw, map[string]func(string, json.RawMessage) error{
		"type":             one("ByteLevel"),
		"add_prefix_space": flag,
	}, map[string]func(string, json.RawMessage) error{
		"trim_offsets": flag,
		"use_regex":    flag,
	})
}

func (p *parser) preTokenizer(field string, raw json.RawMessage) error {
	if isNull(raw) {
		return unsupported(field, "null", `only {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true} is`)
	}
	return p.object(field, raw, map[string]func(string, json.RawMessage) error{
		"type":             one("ByteLevel"),
		"add_prefix_space": one(false),
	}, map[string]func(string, json.RawMessage) error{
		"trim_offsets": flag,
		"use_regex":    one(true),
	})
}

func (p *parser) addedTokens(field string, raw json.RawMessage) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return fieldError(field, "must be a list")
	}
	if len(list) != 1 {
		return unsupported(field, fmt.Sprintf("a list of %d tokens", len(list)), "only the one token "+EndOfText+" is")
	}
	return p.object(field+"[0]", list[0], map[string]func(string, json.RawMessage) error{
		"id": func(field string, raw json.RawMessage) (err error) {
			p.eot, err = id(field, raw)
			return err
		},
		"content": one(EndOfText),
		"special": one(true),
	}, map[string]func(string, json.RawMessage) error{
		"single_word": one(false),
		"lstrip":      one(false),
		"rstrip":      one(false),
		"normalized":  flag, // there is no normalizer that it could keep away
	})
}

func id(field string, raw json.RawMessage) (int32, error) {
	var got *int64
	if json.Unmarshal(raw, &got) != nil || got == nil || *got < 0 || *got >= math.MaxInt32 {
		return 0, fieldError(field, "must be a whole number from 0 to %d", math.MaxInt32-1)
	}
	return int32(*got), nil
}

func (p *parser) model(field string, raw json.RawMessage) error {
	return p.object(field, raw, map[string]func(string, json.RawMessage) error{
		"type":   one("BPE"),
		"vocab":  p.readVocab,
		"merges": p.readMerges,
	}, map[string]func(string, json.RawMessage) error{
		"dropout":                   noDropout,
		"unk_token":                 null,
		"continuing_subword_prefix": noString,
		"end_of_word_suffix":        noString,
		"fuse_unk":                  flag, // without an unknown token it does nothing
		"byte_fallback":             one(false),
		"ignore_merges":             one(false),
	})
}

func (p *parser) readVocab(field string, raw json.RawMessage) error {
	p.vocab = make(map[string]int32)
	return eachMember(field, raw, func(name string, d *json.Decoder) error {
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fieldError(field, "%v", err)
		}
		n, err := id(join(field, name), value)
		if err != nil {
			return err
		}
		if _, dup := p.vocab[name]; dup {
			return fieldError(field, "holds %q twice", name)
		}
		p.vocab[name] = n
		return nil
	})
}

func (p *parser) readMerges(field string, raw json.RawMessage) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		return fieldError(field, "must be a list")
	}
	p.merges = make([][2]string, len(list))
	for i, item := range list {
		var text string
		var pair []string
		switch {
		case json.Unmarshal(item, &pair) == nil && len(pair) == 2:
			p.merges[i] = [2]string{pair[0], pair[1]}
			continue
		case json.Unmarshal(item, &text) == nil:
			if left, right, ok := strings.Cut(text, " "); ok {
				p.merges[i] = [2]string{left, right}
				continue
			}
		}
		return fieldError(fmt.Sprintf("%s[%d]", field, i), `must be "left right" or ["left", "right"]`)
	}
	return nil
}

// build turns names into ids and bytes.
func (p *parser) build() (*Tokenizer, error) {
	// Hugging Face keeps an added token out of the vocabulary when it was added after training.
	if n, ok := p.vocab[EndOfText]; ok && n != p.eot {
		return nil, fieldError("added_tokens[0].id", "is %d, but the vocabulary gives %s the id %d", p.eot, EndOfText, n)
	}
	p.vocab[EndOfText] = p.eot
	entries := make([][]byte, len(p.vocab))
	names := make([]string, len(p.vocab))
	for name, n := range p.vocab {
		if int(n) >= len(entries) {
			return nil, fieldError("model.vocab", "has a gap: %d entries, and %q has id %d", len(entries), name, n)
		}
		if names[n] != "" {
			return nil, fieldError("model.vocab", "gives the id %d to both %q and %q", n, min(name, names[n]), max(name, names[n]))
		}
		if name == "" {
			return nil, fieldError("model.vocab", "holds an entry without a name, of id %d", n)
		}
		names[n] = name
		if name == EndOfText {
			continue
		}
		entry, ok := bytesOf(name)
		if !ok {
			return nil, fieldError("model.vocab", "holds %q, which is not spelt in the byte-level alphabet", name)
		}
		entries[n] = entry
	}
	merges := make([]merge, len(p.merges))
	for i, pair := range p.merges {
		var ids [3]int32
		for j, name := range []string{pair[0], pair[1], pair[0] + pair[1]} {
			n, ok := p.vocab[name]
			if !ok {
				return nil, fieldError(fmt.Sprintf("model.merges[%d]", i), "needs the entry %q, which the vocabulary lacks", name)
			}
			ids[j] = n
		}
		merges[i] = merge{ids[0], ids[1], ids[2]}
	}
	t, err := newTokenizer(entries, merges, p.eot)
	if err != nil {
		return nil, fieldError("model", "is not a byte-level vocabulary: %v", err)
	}
	return t, nil
}
