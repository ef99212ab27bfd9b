package configs

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// inEngine reads a number out of the engine's C source, which is where its limits are defined.
func inEngine(t *testing.T, file, pattern string) float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "engine", file))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in %s", pattern, file)
	}
	if f, err := strconv.ParseFloat(string(found[1]), 64); err == nil {
		return f
	}
	base, shift, ok := strings.Cut(string(found[1]), "U << ")
	b, errB := strconv.ParseFloat(base, 64)
	n, errN := strconv.Atoi(shift)
	if !ok || errB != nil || errN != nil {
		t.Fatalf("%s in %s is not a number", found[1], file)
	}
	return math.Ldexp(b, n)
}

// Whatever Validate accepts, an image can hold.
func TestLimitsAreWithinTheEngines(t *testing.T) {
	columns := inEngine(t, "kernels.h", `CHIPLM_MAX_COLUMNS = (\d+)`)
	layers := inEngine(t, "image.h", `CHIPLM_MAX_LAYERS = (\d+)`)
	experts := inEngine(t, "image.h", `CHIPLM_MAX_EXPERTS = (\d+)`)
	vocab := inEngine(t, "image.c", `"MODL: vocab_size", &m->vocab_size, 1, ([^}]+)\}`)
	factor := inEngine(t, "image.c", `return x >= (0x1p-\d+)f`)
	for _, limit := range []struct {
		key          string
		most, engine float64
		set          func(*Config, int)
	}{
		{"vocab_size", MaxVocab, vocab, func(c *Config, n int) { c.VocabSize = n }},
		{"d_model", MaxWidth, columns, func(c *Config, n int) { c.DModel = n }},
		{"n_layers", MaxLayers, layers, func(c *Config, n int) { c.NLayers = n }},
		{"n_heads", MaxWidth, columns, func(c *Config, n int) { c.NHeads = n }},
		{"d_ff", MaxWidth, columns, func(c *Config, n int) { c.DFF = n }},
		{"context_length", MaxWidth, columns, func(c *Config, n int) { c.ContextLength = n }},
		{"ple_dim", MaxPLEDim, columns, func(c *Config, n int) { c.PLEDim = n }},
		{"ngram_rows", MaxNgramRows, inEngine(t, "image.h", `CHIPLM_MAX_NGRAM_ROWS = (\d+)`), func(c *Config, n int) { c.NgramRows = n }},
		{"experts", MaxExperts, experts, func(c *Config, n int) { c.Experts = n }},
	} {
		if limit.most > limit.engine {
			t.Errorf("%s may be %g, the engine takes %g", limit.key, limit.most, limit.engine)
		}
		c := mustLoad(t, "combo")
		limit.set(c, int(limit.engine)+1)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), limit.key+": want ") {
			t.Errorf("%s beyond the engine: have %v", limit.key, err)
		}
	}
	c := mustLoad(t, "combo")
	if c.NormEps = factor; c.Validate() != nil {
		t.Errorf("norm_eps %g was refused: %v", factor, c.Validate())
	}
	if c.NormEps = math.Nextafter(factor, 0); c.Validate() == nil {
		t.Errorf("norm_eps %g was accepted, which the engine refuses", c.NormEps)
	}
}

func TestAPipeIsNoModelFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.yaml")
	if err := unix.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("have %v", err)
	}
	extends := filepath.Join(filepath.Dir(path), "n.yaml")
	if err := os.WriteFile(extends, []byte("extends: m.yaml\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(extends); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("have %v", err)
	}
}

// A fault of the indentation is on the line that is indented.
func TestPlacesOfBadIndents(t *testing.T) {
	for text, want := range map[string]string{
		"vocab_size: 300\n d_model: 8\nn_layers: 1\n":               "m.yaml:2:2: this line is indented",
		"vocab_size: 300\r\n  d_model: 8\r\n":                       "m.yaml:2:3: this line is indented",
		"# a\n\nname: x\n\n \n   vocab_size: 2\n":                   "m.yaml:6:4: this line is indented",
		"é: 1\nname: x\n  vocab_size: 2\n":                          "m.yaml:3:3: this line is indented",
		"name:\n  x\n  y: 2\n":                                      "m.yaml:3:3: this line is indented",
		"vocab_size: 300 # a\n  d_model: 8\n":                       "m.yaml:2:3: ",
		"name: 'x'\n  d_model: 8\n":                                 "m.yaml:2:3: ",
		"quant:\n  weights:\n    bits: 4\n   group: 3\n":            "m.yaml:4:4: ",
		"quant:\n  weights: {bits: 4}\n   activations: {bits: 8}\n": "m.yaml:3:4: ",
		"d_ff: 1\n: 3\n":                                            "m.yaml:2:1: a colon without a key",
		"d_ff: 1 # a\n: 3\n":                                        "m.yaml:2:1: a colon without a key",
		": 3\n":                                                     "m.yaml:1:1: a colon without a key",
	} {
		if _, err := Parse("m.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q\nhave: %v\nwant: %s", text, err, want)
		}
	}
}
