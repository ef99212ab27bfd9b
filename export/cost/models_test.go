package cost

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
)

var update = flag.Bool("update", false, "rewrite the table of built-in models in docs/configs.md")

// textBytes is the bytes of text for a token by a tokenizer of so many entries: trained on 13 MB of TinyStories, measured on
// 6,456 held-out stories of 5,140,836 bytes, end-of-text not counted. docs/configs.md has the command. 32,768 entries take
// more text than that.
var textBytes = map[int]float64{
	1024:  5_140_836. / (1_632_059 - 6_456),
	2048:  5_140_836. / (1_406_055 - 6_456),
	4096:  5_140_836. / (1_301_330 - 6_456),
	8192:  5_140_836. / (1_261_205 - 6_456),
	16384: 5_140_836. / (1_255_817 - 6_456),
}

const (
	tableStart = "<!-- go test ./export/cost -run TableOfModels -update writes this table -->\n"
	tableHead  = "| file | what it is | parameters | weights, bytes a token | of them read | tokens/s | bytes of text/s |\n|---|---|---|---|---|---|---|\n"
)

// whatItIs is the description in the header of a model file: what comes before its number of parameters.
func whatItIs(t *testing.T, file string) string {
	t.Helper()
	text, err := configs.BuiltinSource(file)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
		if strings.Contains(line, " parameters; a token reads ") {
			_, what, _ := strings.Cut(strings.Join(words, " "), ": ")
			return what
		}
		words = append(words, line)
	}
	t.Fatalf("the header of %s does not give its parameters", file)
	return ""
}

// The command takes every built-in model, and docs/configs.md shows what it says of each.
func TestTableOfModelsIsWhatTheCommandSays(t *testing.T) {
	table := tableHead
	for _, file := range configs.Builtin() {
		out, _, err := execute(t, file, "--json")
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var r Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		c, err := configs.Load("builtin:" + file)
		if err != nil {
			t.Fatal(err)
		}
		all := c.Budget().Total.TokenRead
		if most := float64(all); r.Bytes > most+0.5 || r.Bytes < most/2 || c.Activation != configs.ReLU && r.Bytes < most-0.5 {
			t.Errorf("%s: the command reads %.0f bytes a token, all are %.0f", file, r.Bytes, most)
		}
		text2, _, err := execute(t, file)
		if want := digits.Comma(int64(math.Round(r.Bytes))) + " bytes of weights a token"; err != nil || !strings.Contains(text2, want) {
			t.Errorf("%s: the command does not print %q: %v", file, want, err)
		}
		text := "-"
		if b, ok := textBytes[c.VocabSize]; ok && file != "demo.yaml" {
			text = fmt.Sprintf("%.0f", b*r.Cost.PerSec)
		}
		table += fmt.Sprintf("| `%s` | %s | %s | %s | %s | %.1f | %s |\n", file, whatItIs(t, file), digits.Comma(int64(c.Parameters())),
			digits.Comma(all), digits.Comma(int64(math.Round(r.Bytes))), r.Cost.PerSec, text)
	}
	const page = "../../docs/configs.md"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(raw), tableStart)
	if !ok {
		t.Fatalf("%s lacks %q", page, tableStart)
	}
	had, rest, _ := strings.Cut(after, "\n\n")
	if had+"\n" == table {
		return
	}
	if !*update {
		t.Fatalf("%s has another table; go test ./export/cost -run TableOfModels -update writes it:\n%s", page, table)
	}
	if err := os.WriteFile(page, []byte(before+tableStart+table+"\n"+rest), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A model of float weights is estimated, and the note says that no chip runs it.
func TestFloatModelsAreNoted(t *testing.T) {
	for file, want := range map[string]bool{"plain-float.yaml": true, "plain.yaml": false, "moe.yaml": false} {
		out, _, err := execute(t, file)
		if err != nil || strings.Contains(out, "cannot be exported") != want {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
	out, _, err := execute(t, "combo.yaml", "--set", "quant.activations.bits=32")
	if err != nil || !strings.Contains(out, "cannot be exported") {
		t.Errorf("float activations: %v\n%s", err, out)
	}
}
