package configs

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const small = `vocab_size: 300
d_model: 8
n_layers: 1
n_heads: 2
d_ff: 12
context_length: 16
train: {batch_tokens: 64, micro_batch: 2}
`

func mustLoad(t *testing.T, name string, sets ...string) *Config {
	t.Helper()
	c, err := Load(name, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryBuiltinFile(t *testing.T) {
	if !slices.Contains(Builtin(), "combo.yaml") || !slices.Contains(Builtin(), "demo.yaml") {
		t.Fatalf("built in are %v", Builtin())
	}
	for _, name := range Builtin() {
		c := mustLoad(t, "builtin:"+name)
		if c.Name+".yaml" != name {
			t.Errorf("%s calls itself %s", name, c.Name)
		}
		text, err := BuiltinSource(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "#   chiplm train --config "+name) {
			t.Errorf("%s lacks its launch command in the header", name)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if key, value, ok := strings.Cut(line, ":"); ok && key != "name" && strings.TrimSpace(value) != "" && !strings.Contains(line, "#") {
				t.Errorf("%s: the key %s has no comment", name, key)
			}
		}
		disk := mustLoad(t, name) // tests run in this folder, so this one is the file
		if !reflect.DeepEqual(c, disk) {
			t.Errorf("%s on disk and built in differ", name)
		}
	}
}

func TestParameterCounts(t *testing.T) {
	for _, test := range []struct {
		file string
		want int
	}{
		{"combo.yaml", 3_377_600},
		{"testdata/esp32-ai.yaml", 28_869_920},
	} {
		if got := mustLoad(t, test.file).Parameters(); got != test.want {
			t.Errorf("%s has %d parameters, want %d", test.file, got, test.want)
		}
	}
}

func TestBuiltinIsFoundFromAnywhere(t *testing.T) {
	want := mustLoad(t, "combo.yaml")
	t.Chdir(t.TempDir())
	for _, name := range []string{"combo", "combo.yaml", "builtin:combo", "builtin:combo.yaml"} {
		if got := mustLoad(t, name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s differs from the file", name)
		}
	}
	if err := os.Mkdir("combo", 0o755); err != nil { // a run's folder in the way
		t.Fatal(err)
	}
	mustLoad(t, "combo")
	write(t, "combo.yaml", small)
	if got := mustLoad(t, "combo"); got.DModel != 8 {
		t.Errorf("the file on disk must come first")
	}
	_, err := Load("cobmo.yaml")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "did you mean combo.yaml?") {
		t.Errorf("have %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDefaults(t *testing.T) {
	c, err := Parse("dir/tiny.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Name, want.VocabSize, want.DModel, want.NLayers, want.NHeads, want.DFF, want.ContextLength = "tiny", 300, 8, 1, 2, 12, 16
	want.Train.BatchTokens, want.Train.MicroBatch = 64, 2
	if !reflect.DeepEqual(c, want) {
		t.Errorf("have %+v\nwant %+v", c, want)
	}
}

func TestExtends(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "base.yaml"), small+"name: parent\nactivation: swiglu\n")
	write(t, filepath.Join(sub, "child.yaml"), "extends: ../base.yaml\ntrain:\n  lr: 0.25\nquant: {classes: {embedding: {bits: 8}}}\n")
	write(t, filepath.Join(sub, "grandchild.yaml"), "train: {seed: 7}\nextends: child.yaml\nquant: {classes: {embedding: {group: 128}}}\n")
	write(t, filepath.Join(dir, "wide.yaml"), "extends: combo\nd_ff: 640\n")

	c := mustLoad(t, filepath.Join(sub, "grandchild.yaml"), "train.micro_batch=1")
	if c.Name != "grandchild" {
		t.Errorf("the name %q was inherited", c.Name)
	}
	q := c.WeightQuant(ClassEmbedding)
	if c.Activation != SwiGLU || c.Train.LR != 0.25 || c.Train.Seed != 7 || c.Train.MicroBatch != 1 || c.Train.BatchTokens != 64 ||
		q.Bits != 8 || q.Group != 128 || c.WeightQuant(ClassTrunk).Bits != 4 {
		t.Errorf("merged to %+v", c)
	}
	if c := mustLoad(t, filepath.Join(dir, "wide.yaml")); c.DFF != 640 || c.VocabSize != 4096 || c.Name != "wide" {
		t.Errorf("have %+v", c)
	}
	// A file may vary the built-in one of the same name.
	write(t, filepath.Join(dir, "combo.yaml"), "extends: builtin:combo.yaml\nd_ff: 64\n")
	if c := mustLoad(t, filepath.Join(dir, "combo.yaml")); c.DFF != 64 {
		t.Errorf("have %+v", c)
	}
}

func TestExtendsInACircle(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "extends: b.yaml\n", "b": "d_ff: 3\nextends: ./c.yaml\n", "c": "extends: a.yaml\n", "combo": "extends: combo.yaml\n"} {
		write(t, filepath.Join(dir, name+".yaml"), text)
	}
	_, err := Load(filepath.Join(dir, "a.yaml"))
	if err == nil || !strings.Contains(err.Error(), "c.yaml:1:10: extends: ") ||
		!strings.Contains(err.Error(), "a.yaml -> "+filepath.Join(dir, "b.yaml")+" -> "+filepath.Join(dir, "c.yaml")+" -> "+filepath.Join(dir, "a.yaml")) {
		t.Errorf("have %v", err)
	}
	if _, err = Load(filepath.Join(dir, "combo.yaml")); err == nil || !strings.Contains(err.Error(), "builtin:combo.yaml") {
		t.Errorf("have %v", err)
	}
	for i := range 40 {
		write(t, filepath.Join(dir, "n"+strings.Repeat("x", i)+".yaml"), "extends: n"+strings.Repeat("x", i+1)+".yaml\n")
	}
	if _, err = Load(filepath.Join(dir, "n.yaml")); err == nil || !strings.Contains(err.Error(), "more than 16 files") {
		t.Errorf("have %v", err)
	}
}

// Each file is small, with one fault; want is what the message must say, position included.
func TestRefusals(t *testing.T) {
	sizes := "vocab_size: 300\nn_layers: 1\nd_ff: 12\ncontext_length: 16\n" // 4 lines, without d_model and n_heads
	for _, test := range []struct{ name, text, want string }{
		{"unknown key", small + "d_modle: 4\n", "m.yaml:8:1: d_modle: unknown key; did you mean d_model?"},
		{"unknown key in a section", small + "quant:\n  weights: {bit: 4}\n", "m.yaml:9:13: quant.weights.bit: unknown key; did you mean quant.weights.bits?"},
		{"key of another section", small + "lr: 0.1\n", "m.yaml:8:1: lr: unknown key here; did you mean train.lr, in the section train?"},
		{"key of the top", small + "quant:\n  vocab_size: 3\n", "did you mean vocab_size, outside any section?"},
		{"dotted key", small + "train.lr: 0.1\n", "train.lr: keys with dots are for --set and sweeps alone"},
		{"far from anything", small + "zzzzzzzzzzzz: 1\n", "known here: name, vocab_size"},
		{"unknown class", small + "quant:\n  classes:\n    trnk: {bits: 4}\n", "m.yaml:10:5: quant.classes.trnk: unknown key; did you mean quant.classes.trunk?"},
		{"class of norms", small + "quant: {classes: {norm: {bits: 4}}}\n", "quant.classes.norm: tensors of class norm are float32 always"},
		{"rule for a tied head", small + "quant: {classes: {head: {bits: 4}}}\n", "quant.classes.head: the head is the token embedding"},
		{"text for a number", small + "ple_dim: wide\n", `m.yaml:8:10: ple_dim: want a whole number, have "wide"`},
		{"quoted number", small + "ple_dim: \"8\"\n", `m.yaml:8:10: ple_dim: want a whole number, have "8"`},
		{"fraction", small + "ple_dim: 1.5\n", "ple_dim: want a whole number"},
		{"hexadecimal", small + "ple_dim: 0x10\n", "ple_dim: want a whole number"},
		{"too long an integer", small + "ple_dim: 99999999999999999999\n", "ple_dim: want a whole number"},
		{"number for text", small + "activation: 4\n", "activation: want text, have 4; put it in quotes"},
		{"number for yes or no", small + "qk_norm: 1\n", "qk_norm: want true or false, have \"1\""},
		{"yes", small + "qk_norm: yes\n", "qk_norm: want true or false, have \"yes\""},
		{"a value for a section", small + "quant: 4\n", "m.yaml:8:8: quant: want keys (weights, activations, classes, start, start_step), have \"4\""},
		{"a section for a value", small + "ple_dim: {a: 4}\n", "ple_dim: want a whole number, have a group of keys"},
		{"list", small + "ple_dim: [4]\n", "m.yaml:8:10: no key of a model file takes a list"},
		{"block list", "- a\n", "m.yaml:1:1: no key of a model file takes a list"},
		{"no value", small + "ple_dim:\n", "ple_dim: has no value"},
		{"null", small + "quant: ~\n", "quant: has no value"},
		{"given twice", small + "ple_dim: 4\nple_dim: 4\n", "m.yaml:9:1: ple_dim: given twice, first on line 8"},
		{"given twice, nested", small + "quant: {start_step: 1, start_step: 1}\n", "quant.start_step: given twice"},
		{"NaN", small + "norm_eps: .nan\n", "norm_eps: want a finite number"},
		{"infinity", small + "norm_eps: -.inf\n", "norm_eps: want a finite number"},
		{"too large a number", small + "norm_eps: 1e999\n", "norm_eps: want a finite number"},
		{"empty", "", "m.yaml: is empty; give vocab_size"},
		{"only comments", "# nothing\n\n---\n", "m.yaml: is empty"},
		{"a word", "hello\n", "m.yaml:1:1: want key: value, have \"hello\""},
		{"missing sizes", "d_model: 4\nd_ff: 4\n", "vocab_size: missing: vocab_size, n_layers, n_heads, context_length; give a value, or inherit"},
		{"binary", "\x7fELF\x02\x01\x01\x00\x00", "control character U+007F"},
		{"UTF-16", "n\x00a\x00", "m.yaml:1: a zero byte, so not a text file in UTF-8"},
		{"not UTF-8", "a: 1\nb: \xff\n", "m.yaml:2: not UTF-8"},
		{"huge", strings.Repeat("# 0123456789abcdef\n", 5000), "larger than 64 KiB"},
		{"anchor", "a: &x 4\n", "m.yaml:1:4: anchors and aliases are not part of a model file; write the value out, or use extends: other.yaml"},
		{"alias", "a: *x\n", "anchors and aliases are not part"},
		{"merge key", "<<: {a: 4}\n", "anchors and aliases are not part"},
		{"tag", "a: !!int 4\n", "tags and directives"},
		{"two documents", small + "---\nd_ff: 4\n", "a second YAML document"},
		{"deep braces", "a: " + strings.Repeat("{a: ", 10000), "nested braces"},
		{"unclosed brace", small + "quant: {weights: 4\n", "not valid YAML"},
		{"unclosed quote", small + "name: \"a\n", "not valid YAML"},
		{"tabs", "quant:\n\tweights: 4\n", "a tab, which YAML does not take for indentation"},
		{"text over lines", small + "name: |\n  a\n", "text over several lines"},
		{"no heads that fit", sizes + "d_model: 10\nn_heads: 4\n", "m.yaml:6:10: n_heads: d_model 10 does not divide into 4 heads"},
		{"odd head size", sizes + "d_model: 12\nn_heads: 4\n", "head size d_model/n_heads = 12/4 = 3 is odd"},
		{"no heads", sizes + "d_model: 12\nn_heads: 0\n", "n_heads: want 1 to"},
		{"negative size", strings.Replace(small, "d_ff: 12", "d_ff: -12", 1), "m.yaml:5:7: d_ff: want 1 to 32768, have -12"},
		{"small vocabulary", strings.Replace(small, "300", "256", 1), "m.yaml:1:13: vocab_size: want 257 to 1048576 (256 bytes and the end of text need 257 entries), have 256"},
		{"huge vocabulary", strings.Replace(small, "300", "9223372036854775807", 1), "vocab_size: want 257 to"},
		{"overflow of the total", strings.NewReplacer("d_ff: 12", "d_ff: 32768", "d_model: 8", "d_model: 32768", "n_layers: 1", "n_layers: 256").Replace(small) + "experts: 256\n", "d_ff: the model would have "},
		{"too large a table", strings.NewReplacer("300", "1000000", "n_layers: 1", "n_layers: 250").Replace(small) + "ple_dim: 4000\n", "(ple_table alone [1000000 1000000])"},
		{"group", small + "quant: {weights: {group: 48}}\n", "m.yaml:8:26: quant.weights.group: want 32, 64, 128, or 0 for a whole row; have 48"},
		{"bits", small + "quant:\n  classes:\n    ple_table: {bits: 3}\n", "m.yaml:10:23: quant.classes.ple_table.bits: want 2, 4, 8, or 32"},
		{"scale", small + "quant: {weights: {scale: f61}}\n", `quant.weights.scale: want f32 or f16, have "f61"; did you mean f16?`},
		{"activation bits", small + "quant: {activations: {bits: 4}}\n", "quant.activations.bits: want 8, or 32"},
		{"activation", small + "activation: gelu\n", `activation: want relu or swiglu, have "gelu"; did you mean relu?`},
		{"batch", strings.Replace(small, "batch_tokens: 64", "batch_tokens: 80", 1), "m.yaml:7:23: train.batch_tokens: 80 tokens are not a whole number of micro-batches of micro_batch x context_length = 2 x 16 = 32 tokens; the next one up is 96"},
		{"less than a step", strings.Replace(small, "train: {", "train: {tokens: 63, ", 1), "train.tokens: 63 tokens are less than one step"},
		{"schedule", strings.Replace(small, "train: {", "train: {schedule: lineer, ", 1), "did you mean linear?"},
		{"optimizer", strings.Replace(small, "train: {", "train: {optimizer: sgd, ", 1), "train.optimizer: want adamw or muon, have \"sgd\""},
		{"learning rate", strings.Replace(small, "train: {", "train: {lr: 0, ", 1), "train.lr: want"},
		{"beta", strings.Replace(small, "train: {", "train: {beta2: 1.0, ", 1), "train.beta2: want 0 to"},
		{"keep none", strings.Replace(small, "train: {", "train: {keep_last: 0, ", 1), "train.keep_last: want 1 to"},
		{"subnormal epsilon", small + "norm_eps: 1e-40\n", "norm_eps: want"},
		{"name as a path", small + "name: ../x\n", "name: it names the run's folder"},
		{"extends nothing", "extends: ''\n", "extends: want the name of one model file"},
		{"extends a slip", "extends: dmo.yaml\n", `m.yaml:1:10: extends: no model file "dmo.yaml" on disk, nor built in; did you mean demo.yaml?`},
		{"extends a path", "extends: /v/none.yaml\n", `m.yaml:1:10: extends: there is no model file "/v/none.yaml"; mend the path`},
		{"extends a built-in file elsewhere", "extends: /v/demo.yaml\n", "mend the path, or write builtin:demo.yaml for the built-in file"},
		{"dotted key", "train.tokens: 5000\n", "m.yaml:1:1: train.tokens: keys with dots are for --set and sweeps alone; a model file has sections: write train: {tokens: ...}"},
		{"dotted key of two", "quant.weights.bits: 4\n", "write quant: {weights: {bits: ...}}"},
		{"dotted key in a section", "quant:\n  weights.bits: 4\n", "m.yaml:2:3: quant.weights.bits: keys with dots are for --set and sweeps alone; a model file has sections: write weights: {bits: ...}"},
		{"tab", "train:\n\ttokens: 5000\n", "a tab, which YAML does not take for indentation; indent with spaces"},
		{"extends what is not there", "extends: nowhere.yaml\n", "m.yaml:1:10: extends: no model file \"nowhere.yaml\""},
		{"a fault in the base", "extends: testdata/broken.yaml\nd_model: 4\n", "testdata/broken.yaml:2:10: d_model: want a whole number, have \"wide\""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := Parse("m.yaml", []byte(test.text))
			if err == nil {
				t.Fatalf("accepted: %+v", c)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("have: %v\nwant: %s", err, test.want)
			}
			if len(err.Error()) > 500 || strings.Contains(err.Error(), "\n") {
				t.Errorf("a long message: %q", err)
			}
		})
	}
}

func TestSets(t *testing.T) {
	c := mustLoad(t, "combo", "train.lr=3e-3", "d_ff=64", "train.tokens=20_000_000", "train.tokens=2e7",
		"quant.classes.ple_table.bits=2", "quant.weights={bits: 8, scale: f16}", "name=\"7\"", "tie_embeddings=false", " activation = swiglu")
	if c.Train.LR != 0.003 || c.DFF != 64 || c.Train.Tokens != 20_000_000 || c.WeightQuant(ClassPLETable) != (WeightQuant{2, 64, ScaleF16, 1}) ||
		c.WeightQuant(ClassHead).Bits != 8 || c.Name != "7" || c.TieEmbeddings || c.Activation != SwiGLU {
		t.Errorf("have %+v", c)
	}
	for set, want := range map[string]string{
		"train.lr":                  "--set train.lr: want KEY=VALUE",
		"=4":                        "want KEY=VALUE",
		"train.lr=":                 "--set train.lr=: train.lr: has no value",
		"train.lr=fast":             "--set train.lr=fast: train.lr: want a finite number, have \"fast\"",
		"train.rl=4":                "--set train.rl=4: train.rl: unknown key; did you mean train.lr?",
		"lr=4":                      "did you mean train.lr, in the section train?",
		"d_ff.x=4":                  "d_ff: want a whole number, have a group of keys",
		"train=4":                   "train: want keys",
		"extends=x.yaml":            "cannot be set here",
		"n_heads=5":                 "--set n_heads=5: n_heads: d_model 128 does not divide into 5 heads",
		"d_model=130":               "--set d_model=130: d_model: d_model 130 does not divide into 4 heads",
		"context_length=100":        "--set context_length=100: context_length: 2048 tokens are not a whole number",
		"quant.weights={bits: 4":    "--set quant.weights={bits: 4: not valid YAML",
		"a.b.c.d.e.f.g.h.i.j.k.l=1": "so many parts",
		"d_ff=1\x00":                "zero byte",
		"d_ff=*a":                   "anchors",
		"d_ff=[1]":                  "takes a list",
		"train={lr: 1, lr: 2}":      "train.lr: given twice; keep one",
	} {
		_, err := Load("combo", set)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "use extends") { // that is for files
			t.Errorf("--set %s\nhave: %v\nwant: %s", set, err, want)
		}
		var located *Error
		if !errors.As(err, &located) || !strings.HasPrefix(located.Source, "--set ") {
			t.Errorf("--set %s: the error does not name the argument: %v", set, err)
		}
	}
}

func TestOddFilesThatAreFine(t *testing.T) {
	want, err := Parse("m.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"CRLF":             strings.ReplaceAll(small, "\n", "\r\n"),
		"byte-order mark":  "\xef\xbb\xbf" + small,
		"no last newline":  strings.TrimSuffix(small, "\n"),
		"document marks":   "---\n" + small + "...\n",
		"comments":         "# a\n" + strings.ReplaceAll(small, "\n", " # [{ &x *y\n"),
		"one line":         "{" + strings.TrimSuffix(strings.ReplaceAll(strings.ReplaceAll(small, "\n", ", "), "'", ""), ", ") + "}",
		"explicit default": small + "quant: {classes: {}}\n",
		"underscores":      small + "rope_theta: 1_0_000\n",
		"quoted key":       strings.Replace(small, "d_model:", "\"d_model\":", 1),
	} {
		got, err := Parse("m.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: have %+v", name, got)
		}
	}
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{dir: "is a folder", "/dev/zero": "not a regular file", filepath.Join(dir, "no.yaml"): "no model file"} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %s", path, err, want)
		}
	}
}

func TestYAMLRoundTrip(t *testing.T) {
	eight, sixteen := 8, ScaleF16
	c := mustLoad(t, "combo")
	c.Train.LR, c.NormEps, c.Train.Beta2, c.Train.Eps = 0.1+0.2, 3e-7, 1.0/3, 5e-324
	c.Train.Eps = 1e-30
	c.Quant.Classes = map[TensorClass]ClassRule{ClassPLETable: {Bits: &eight, Scale: &sixteen}, ClassEmbedding: {Bits: &eight}}
	for _, name := range []string{"combo", "1e5", "true", "0", "a.b-c_d", "null", "No", "_"} {
		c.Name = name
		text, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("other.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(back, c) {
			t.Errorf("have %+v\nwant %+v\n%s", back, c, text)
		}
	}
}

// Stored checkpoints carry these hashes, so the canonical form must not change by accident.
func TestCanonicalForm(t *testing.T) {
	text, err := mustLoad(t, "testdata/esp32-ai.yaml").YAML()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/esp32-ai.resolved.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != string(want) {
		t.Errorf("the canonical form has changed:\n%s", text)
	}
}

func TestHashes(t *testing.T) {
	base := mustLoad(t, "combo")
	for set, changesTraining := range map[string]bool{
		"name=other": false, "train.valid_every=7": false, "train.valid_tokens=7": false, "train.sample_every=7": false,
		"train.save_every=7": false, "train.keep_last=7": false,
		"train.seed=7": true, "train.tokens=8192": true, "d_ff=7": true, "train.lr=7": true, "quant.classes.trunk.bits=8": true, "train.zero_init_proj=false": true, "attention_scale=2": true,
	} {
		c := mustLoad(t, "combo", set)
		if c.Hash() == base.Hash() {
			t.Errorf("%s leaves Hash unchanged", set)
		}
		if (c.TrainHash() != base.TrainHash()) != changesTraining {
			t.Errorf("%s: TrainHash changes = %v, want %v", set, !changesTraining, changesTraining)
		}
		key, _, _ := strings.Cut(set, "=")
		d, err := Differences(base, c)
		if err != nil || len(d) != 1 && key != "quant.classes.trunk.bits" || d[len(d)-1].Key != key {
			t.Errorf("%s: differences %v, %v", set, d, err)
		}
	}
	if len(base.Hash()) != 64 {
		t.Errorf("have %q", base.Hash())
	}
}

func TestValidateOfABuiltConfig(t *testing.T) {
	c := mustLoad(t, "combo")
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	c.Train.LR = math.NaN()
	var e *Error
	if err := c.Validate(); !errors.As(err, &e) || e.Key != "train.lr" {
		t.Errorf("have %v", err)
	}
	if _, err := c.YAML(); err == nil {
		t.Error("a NaN was written")
	}
	three := 3
	c = mustLoad(t, "combo")
	c.Quant.Classes = map[TensorClass]ClassRule{"norm": {Bits: &three}}
	if c.Validate() == nil {
		t.Error("a rule for norms was accepted")
	}
	if (&Config{}).Validate() == nil {
		t.Error("the empty configuration was accepted")
	}
}
