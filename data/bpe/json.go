package bpe

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/chiplm/chiplm/data/regular"
)

// JSON returns the tokenizer as a Hugging Face tokenizer.json: the same bytes for the same tokenizer, always.
// Merges are written as "left right", which every version of Hugging Face's tokenizers reads.
func (t *Tokenizer) JSON() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [
    {
      "id": %d,
      "content": %s,
      "single_word": false,
      "lstrip": false,
      "rstrip": false,
      "normalized": false,
      "special": true
    }
  ],
  "normalizer": null,
  "pre_tokenizer": {
    "type": "ByteLevel",
    "add_prefix_space": false,
    "trim_offsets": true,
    "use_regex": true
  },
  "post_processor": null,
  "decoder": {
    "type": "ByteLevel",
    "add_prefix_space": true,
    "trim_offsets": true,
    "use_regex": true
  },
  "model": {
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": false,
    "vocab": {`, t.eot, quote([]byte(EndOfText)))
	for id, entry := range t.entries {
		name := []byte(EndOfText)
		if int32(id) != t.eot {
			name = appendChars(nil, entry)
		}
		separate(&b, id)
		fmt.Fprintf(&b, "%s: %d", quote(name), id)
	}
	b.WriteString("\n    },\n    \"merges\": [")
	for rank, m := range t.merges {
		separate(&b, rank)
		pair := appendChars(nil, t.entries[m.left])
		b.Write(quote(appendChars(append(pair, ' '), t.entries[m.right])))
	}
	if len(t.merges) > 0 {
		b.WriteString("\n    ")
	}
	b.WriteString("]\n  }\n}\n")
	return b.Bytes()
}

func separate(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
	b.WriteString("\n      ")
}

// quote makes a JSON string of characters of the alphabet, of which only the quote and the backslash need escaping.
func quote(s []byte) []byte {
	q := []byte{'"'}
	for _, c := range s {
		if c == '"' || c == '\\' {
			q = append(q, '\\')
		}
		q = append(q, c)
	}
	return append(q, '"')
}

// maxJSON bounds the size of a tokenizer.json: the largest vocabularies in use take some 30 MB.
const maxJSON = 256 << 20

// Load reads a tokenizer.json, a regular file of at most 256 MiB; see [Parse].
func Load(path string) (*Tokenizer, error) {
	b, err := regular.ReadFile(path, maxJSON)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	t, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s: %w", path, err)
	}
	return t, nil
}

// Save writes JSON() to path, whole or not at all.
func (t *Tokenizer) Save(path string) error {
	if err := regular.WriteFile(path, t.JSON()); err != nil {
		return fmt.Errorf("save tokenizer: %w", err)
	}
	return nil
}

// member is one name and value of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of a JSON object in order, and refuses a name that occurs twice.
func members(field string, raw json.RawMessage) ([]member, error) {
	var out []member
	seen := make(map[string]bool)
	err := eachMember(field, raw, func(name string, d *json.Decoder) error {
		if seen[name] {
			return fieldError(field, "holds %q twice", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fieldError(field, "%v", err)
		}
		out = append(out, member{name, value})
		return nil
	})
	return out, err
}

// eachMember calls f for every member of a JSON object, with a decoder that stands before its value.
func eachMember(field string, raw json.RawMessage, f func(name string, d *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return fieldError(field, "must be a JSON object")
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return fieldError(field, "%v", err)
		}
		name, ok := token.(string)
		if !ok {
			return fieldError(field, "has a member without a name")
		}
		if err := f(name, d); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fieldError(field, "%v", err)
	}
	return nil
}

// fieldError names the field of the tokenizer.json that is at fault.
func fieldError(field, format string, args ...any) error {
	return fmt.Errorf("tokenizer.json: field %q %s", field, fmt.Sprintf(format, args...))
}
