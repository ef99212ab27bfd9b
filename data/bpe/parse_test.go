package bpe

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// edit returns a valid tokenizer.json with one piece of text replaced; the piece must be there.
func edit(t testing.TB, old, new string) string {
	t.Helper()
	text := string(loadReferenceTokenizer(t).JSON())
	if !strings.Contains(text, old) {
		t.Fatalf("the tokenizer.json has no %q", old)
	}
	return strings.Replace(text, old, new, 1)
}

func TestParseRefusesWhatItDoesNotSupport(t *testing.T) {
	const preTokenizer = "\"pre_tokenizer\": {\n    \"type\": \"ByteLevel\",\n    \"add_prefix_space\": false"
	tests := []struct{ name, old, new, field string }{
		{"normalizer", `"normalizer": null`, `"normalizer": {"type": "NFC"}`, "normalizer"},
		{"other pre-tokenizer", preTokenizer, strings.Replace(preTokenizer, "ByteLevel", "Whitespace", 1), "pre_tokenizer.type"},
		{"prefix space", preTokenizer, strings.Replace(preTokenizer, "false", "true", 1), "pre_tokenizer.add_prefix_space"},
		{"no regex", `"use_regex": true`, `"use_regex": false`, "pre_tokenizer.use_regex"},
		{"post-processor", `"post_processor": null`, `"post_processor": {"type": "BertProcessing", "sep": ["a", 1]}`, "post_processor.type"},
		{"decoder", "\"decoder\": {\n    \"type\": \"ByteLevel\"", "\"decoder\": {\n    \"type\": \"BPEDecoder\"", "decoder.type"},
		{"truncation", `"truncation": null`, `"truncation": {"max_length": 4}`, "truncation"},
		{"padding", `"padding": null`, `"padding": {"length": 4}`, "padding"},
		{"version", `"version": "1.0"`, `"version": "2.0"`, "version"},
		{"model", `"type": "BPE"`, `"type": "WordPiece"`, "model.type"},
		{"dropout", `"dropout": null`, `"dropout": 0.1`, "model.dropout"},
		{"unknown token", `"unk_token": null`, `"unk_token": "!"`, "model.unk_token"},
		{"prefix", `"continuing_subword_prefix": null`, `"continuing_subword_prefix": "##"`, "model.continuing_subword_prefix"},
		{"suffix", `"end_of_word_suffix": null`, `"end_of_word_suffix": "</w>"`, "model.end_of_word_suffix"},
		{"byte fallback", `"byte_fallback": false`, `"byte_fallback": true`, "model.byte_fallback"},
		{"ignore merges", `"ignore_merges": false`, `"ignore_merges": true`, "model.ignore_merges"},
		{"another added token", `"special": true` + "\n    }", `"special": true}, {"id": 1, "content": "!"}`, "added_tokens"},
		{"no added token", `"content": "<|endoftext|>"`, `"content": "<s>"`, "added_tokens[0].content"},
		{"stripping", `"lstrip": false`, `"lstrip": true`, "added_tokens[0].lstrip"},
		{"not special", `"special": true`, `"special": false`, "added_tokens[0].special"},
		{"unknown field", `"version": "1.0"`, `"version": "1.0", "extra": 1`, "extra"},
		{"unknown field of the model", `"fuse_unk": false`, `"fuse_unk": false, "Vocab": {}`, "model.Vocab"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(edit(t, test.old, test.new)))
			if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), `field "`+test.field+`"`) {
				t.Errorf("want an unsupported-error on field %q, got: %v", test.field, err)
			}
		})
	}
}

func TestParseAcceptsWhatDoesNotChangeTheTokens(t *testing.T) {
	want := loadReferenceTokenizer(t).Hash()
	for _, change := range [][2]string{
		{`"version": "1.0",`, ``},
		{`"truncation": null,`, ``},
		{`"post_processor": null`, `"post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false}`},
		{`"dropout": null`, `"dropout": 0.0`},
		{`"continuing_subword_prefix": null`, `"continuing_subword_prefix": ""`},
		{`"fuse_unk": false`, `"fuse_unk": true`},
		{`"normalized": false`, `"normalized": true`},
		{`"<|endoftext|>": 0,`, ``}, // an added token may be left out of the vocabulary
	} {
		tok, err := Parse([]byte(edit(t, change[0], change[1])))
		if err != nil {
			t.Errorf("%s: %v", change[1], err)
		} else if tok.Hash() != want {
			t.Errorf("%s: another tokenizer", change[1])
		}
	}
}

func TestParseRefusesBrokenFiles(t *testing.T) {
	tests := []struct{ name, text, message string }{
		{"empty", "", "not valid JSON"},
		{"cut short", string(loadReferenceTokenizer(t).JSON()[:5000]), "not valid JSON"},
		{"two values", "{} {}", "not valid JSON"},
		{"a list", "[]", "must be a JSON object"},
		{"null", "null", "must be a JSON object"},
		{"deep", strings.Repeat("[", 100000), "not valid JSON"},
		{"no model", `{"added_tokens": [{"id": 0, "content": "<|endoftext|>", "special": true}],
			"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}}`, `"model" is missing`},
		{"no pre-tokenizer", edit(t, `"pre_tokenizer"`, `"normalizer"`), "twice"},
		{"null model", `{"model": null}`, `"model" must be a JSON object`},
		{"null pre-tokenizer", `{"pre_tokenizer": null}`, "not supported"},
		{"duplicate id", edit(t, `"\"": 2`, `"\"": 3`), "the id 3 to both"},
		{"gap", edit(t, `": 439`, `": 440`), "has a gap"},
		{"huge id", edit(t, `": 439`, `": 99999999999999999999`), "whole number"},
		{"negative id", edit(t, `": 439`, `": -1`), "whole number"},
		{"fractional id", edit(t, `": 439`, `": 439.5`), "whole number"},
		{"string id", edit(t, `": 439`, `": "439"`), "whole number"},
		{"null id", edit(t, `": 439`, `": null`), "whole number"},
		{"duplicate name", edit(t, `"\"": 2`, `"!": 2`), `"!" twice`},
		{"missing byte", edit(t, `"$": 4`, `"$$": 4`), "byte 0x24 has no entry"},
		{"foreign character", edit(t, `"\"": 2`, `"€": 2`), "byte-level alphabet"},
		{"space in an entry", edit(t, `"\"": 2`, `"a b": 2`), "byte-level alphabet"},
		{"invalid UTF-8", edit(t, `"\"": 2`, "\"\xff\": 2"), "byte-level alphabet"},
		{"nameless entry", edit(t, `"\"": 2`, `"": 2`), "without a name"},
		{"other end-of-text id", edit(t, `"id": 0`, `"id": 5`), `added_tokens[0].id`},
		{"merge without entry", edit(t, `"h e"`, `"Z q"`), `needs the entry "Zq"`},
		{"merge of three", edit(t, `"h e"`, `"h e x"`), `needs the entry "e x"`},
		{"merge without space", edit(t, `"h e"`, `"he"`), "model.merges["},
		{"merge of a number", edit(t, `"h e"`, `5`), "model.merges["},
		{"merge null", edit(t, `"h e"`, `null`), "model.merges["},
		{"merge list of three", edit(t, `"h e"`, `["h", "e", "x"]`), "model.merges["},
		{"same merge twice", edit(t, `"h e"`, `"h e", "h e"`), "same pair"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(), "tokenizer.json") {
				t.Errorf("want an error with %q, got: %v", test.message, err)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	if _, err := Load("testdata/none.json"); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Load("testdata/reference.json"); err == nil || !strings.Contains(err.Error(), "testdata/reference.json") {
		t.Errorf("another file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	small := trained(f, 260, "aaaa bbbb").JSON()
	f.Add(small)
	f.Add([]byte(`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}}`))
	f.Add([]byte(strings.Replace(string(small), `"! !"`, `[]`, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := Parse(b)
		if err != nil {
			return
		}
		if !json.Valid(tok.JSON()) {
			t.Fatal("JSON is no JSON")
		}
		again, err := Parse(tok.JSON())
		if err != nil || again.Hash() != tok.Hash() {
			t.Fatalf("written and read again it is another tokenizer: %v", err)
		}
		text := []byte("aaa bb \xff")
		if got := tok.Decode(nil, tok.Encode(nil, text)); string(got) != string(text) {
			t.Fatalf("%q came back as %q", text, got)
		}
	})
}
