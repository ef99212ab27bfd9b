package configs

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the variants in this folder: combo.yaml with the keys that their headers name")

// sheet is what the test knows of a model file without reading it: sizes, and what the file is compared with.
type sheet struct {
	v, d, l, f, p, e    int // vocabulary, d_model, layers, neurons, width of the per-layer embeddings, experts
	ngrams              int // rows of the bigram table
	relu                bool
	bits, group, scale  int // of the weights; bytes of a scale
	with                string
	equal               string // in what the two are equal: bytes, parameters or layers
	published, rounding int    // parameters as others published them, and to what they are rounded
}

// plainSheet is the baseline; the others are what differs from it.
func plainSheet(with, equal string, change func(*sheet)) sheet {
	s := sheet{v: 4096, d: 128, l: 6, f: 384, bits: 4, group: 64, scale: 4, with: with, equal: equal}
	change(&s)
	return s
}

func comboSheet(with, equal string, change func(*sheet)) sheet {
	s := plainSheet(with, equal, func(s *sheet) { s.f, s.p, s.relu = 320, 64, true })
	change(&s)
	return s
}

// sheets has a row for every built-in file.
var sheets = map[string]sheet{
	"combo": comboSheet("plain", "bytes", func(s *sheet) { s.published, s.rounding = 3_400_000, 100_000 }),
	"demo": comboSheet("", "", func(s *sheet) {
		s.v, s.d, s.l, s.f, s.p, s.group = 1024, 64, 3, 160, 16, 32
	}),
	"plain":       plainSheet("combo", "bytes", func(*sheet) {}),
	"plain-float": plainSheet("plain", "parameters", func(s *sheet) { s.bits = 32 }),
	"ple":         plainSheet("plain", "bytes", func(s *sheet) { s.f, s.p = 320, 64 }),
	"relu":        plainSheet("plain", "bytes", func(s *sheet) { s.relu = true }),
	// Some published counts are of matrices alone, rounded to a hundred thousand, so norms may be on top.
	"combo-wide":   comboSheet("combo", "bytes", func(s *sheet) { s.f, s.p, s.published, s.rounding = 256, 128, 4_900_000, 100_000 }),
	"combo-tables": comboSheet("combo", "bytes", func(s *sheet) { s.f, s.p, s.ngrams, s.scale = 288, 128, 16384, 2 }),
	"combo-taught": comboSheet("combo-tables", "bytes", func(s *sheet) { s.f, s.p, s.ngrams, s.scale = 288, 128, 16384, 2 }),
	"combo-large":  comboSheet("varc", "bytes", func(s *sheet) { s.d, s.f, s.p, s.ngrams, s.group, s.scale = 160, 224, 128, 16384, 32, 2 }),
	"teacher": comboSheet("", "", func(s *sheet) {
		s.d, s.f, s.p, s.ngrams, s.bits, s.scale = 192, 512, 128, 16384, 8, 2
	}),
	"combo-v1024":  comboSheet("combo", "layers", func(s *sheet) { s.v = 1024 }),
	"combo-v2048":  comboSheet("combo", "layers", func(s *sheet) { s.v = 2048 }),
	"combo-v8192":  comboSheet("combo", "layers", func(s *sheet) { s.v = 8192 }),
	"combo-v16384": comboSheet("combo", "layers", func(s *sheet) { s.v = 16384 }),
	"varc": comboSheet("combo-wide", "layers", func(s *sheet) {
		s.v, s.f, s.p, s.published, s.rounding = 8192, 256, 128, 8_600_000, 100_000
	}),
	"moe":     plainSheet("plain", "bytes", func(s *sheet) { s.e = 4 }),
	"two-bit": plainSheet("plain", "parameters", func(s *sheet) { s.bits = 2 }),
	"two-bit-wide": plainSheet("plain", "bytes", func(s *sheet) {
		s.d, s.f, s.bits, s.scale = 192, 544, 2, 2
	}),
	"deep": plainSheet("plain", "bytes", func(s *sheet) { s.d, s.l, s.f = 96, 12, 256 }),
	"esp32-ai": plainSheet("combo", "", func(s *sheet) {
		s.v, s.d, s.f, s.p, s.group, s.scale, s.published, s.rounding = 32768, 96, 66, 128, 128, 2, 28_869_920, 1
	}),
}

func blocks(n, size int) int { return (n + size - 1) / size }

// rows is the bytes of n rows in the image: codes in blocks of 16 bytes, then a scale a group.
func (s *sheet) rows(n, cols int) int {
	if s.bits == 32 {
		return n * 16 * blocks(cols*4, 16)
	}
	return n * (16*blocks(cols*s.bits, 128) + s.scale*blocks(cols, s.group))
}

// parameters counts what docs/numerics.md multiplies.
func (s *sheet) parameters() int {
	n := s.v*s.d + s.ngrams*s.d + s.d + s.l*(4*s.d*s.d+max(s.e, 1)*3*s.d*s.f+2*s.d+s.e*s.d)
	if s.p > 0 {
		n += s.l*s.p*s.d + s.p + s.v*s.l*s.p + s.l*(2*s.p*s.d+s.d)
	}
	return n
}

// read is the bytes of weights that a token reads when no neuron is skipped: the tied output layer and a row of it, one
// expert of each layer, a row of each of the other tables.
func (s *sheet) read() int {
	n := s.rows(s.v+1, s.d) + s.rows(min(s.ngrams, 1), s.d) + 4*s.d
	layer := s.rows(4*s.d+2*s.f, s.d) + s.rows(s.d, s.f) + 4*(2*s.d+s.e*s.d)
	if s.relu { // down lies column by column
		layer += s.f*16*blocks(s.d*s.bits, 128) - s.d*16*blocks(s.f*s.bits, 128)
	}
	if s.p > 0 {
		n += s.rows(s.l*s.p, s.d) + 4*s.p + s.rows(1, s.l*s.p)
		layer += s.rows(s.p, s.d) + s.rows(s.d, s.p) + 4*s.d
	}
	return n + s.l*layer
}

var (
	sizesLine   = regexp.MustCompile(`(?m)^# ([0-9,]+|PARAMS) parameters; a token reads ([0-9,]+|BYTES) bytes of weights`)
	changesLine = regexp.MustCompile(`(?m)^# Changes of combo\.yaml: (.*)$`)
)

func comma(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Every built-in file has the sizes of its row, and says so in its header.
func TestSizesOfEveryBuiltinFile(t *testing.T) {
	for _, file := range Builtin() {
		name := strings.TrimSuffix(file, ".yaml")
		s, ok := sheets[name]
		if !ok {
			t.Errorf("%s has no row in the test's table: work its sizes out and add one", file)
			continue
		}
		c := mustLoad(t, "builtin:"+file)
		if got := c.Parameters(); got != s.parameters() {
			t.Errorf("%s has %d parameters, want %d", file, got, s.parameters())
		}
		if got := c.Budget().Total.TokenRead; got != int64(s.read()) {
			t.Errorf("a token of %s reads %d bytes, want %d", file, got, s.read())
		}
		if off := c.Parameters() - s.published; s.published > 0 && (off < -s.rounding/2 || off >= s.rounding) {
			t.Errorf("%s has %d parameters, %d are published", file, c.Parameters(), s.published)
		}
		text := mustRead(t, file)
		sizes := sizesLine.FindStringSubmatch(text)
		if sizes == nil || sizes[1] != comma(s.parameters()) || sizes[2] != comma(s.read()) {
			t.Errorf("%s: its header says %q, want %s parameters and %s bytes", file, sizes, comma(s.parameters()), comma(s.read()))
		}
	}
	for name := range sheets {
		if !slices.Contains(Builtin(), name+".yaml") {
			t.Errorf("%s.yaml is not built in", name)
		}
	}
}

func mustRead(t *testing.T, file string) string {
	t.Helper()
	text, err := BuiltinSource(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a file is compared with, it names, and the two are equal in what the header says: bytes to 2 %, which is less than a
// step of 16 neurons or the routers of experts come to; parameters and layers exactly.
func TestVariantsAreComparedAtEqualMeasure(t *testing.T) {
	for name, s := range sheets {
		if s.with == "" {
			continue
		}
		other := sheets[s.with]
		text := mustRead(t, name+".yaml")
		header := strings.Join(strings.Fields(strings.ReplaceAll(text[:strings.Index(text, "\nname:")], "\n#", " ")), " ")
		phrase := "Compared with " + s.with + ".yaml"
		if s.equal == "bytes" {
			phrase += " at equal bytes per token"
		} else if s.equal != "" {
			phrase += " at equal " + s.equal
		}
		if !strings.Contains(header, phrase) {
			t.Errorf("%s: its header does not say %q", name, phrase)
		}
		switch a, b := s, other; s.equal {
		case "bytes":
			if off := float64(a.read())/float64(b.read()) - 1; math.Abs(off) > 0.02 {
				t.Errorf("%s reads %.1f %% more than %s", name, 100*off, s.with)
			}
		case "parameters":
			if a.parameters() != b.parameters() {
				t.Errorf("%s has %d parameters, %s has %d", name, a.parameters(), s.with, b.parameters())
			}
		case "layers":
			a.v, a.published, a.rounding = b.v, b.published, b.rounding
			a.with, a.equal = b.with, b.equal
			if a != b {
				t.Errorf("%s and %s differ in more than the vocabulary: %+v and %+v", name, s.with, a, b)
			}
		}
	}
	wide, plain := sheets["two-bit-wide"], sheets["plain"]
	if times := float64(wide.parameters()) / float64(plain.parameters()); times < 1.95 || times > 2.05 {
		t.Errorf("two-bit-wide has %.2f times the weights of plain", times)
	}
}

// Every key is written out with a comment, so one file says all of a model.
func TestEveryKeyIsInEveryBuiltinFile(t *testing.T) {
	for _, file := range Builtin() {
		have := map[string]bool{}
		for _, l := range bodyLines(mustRead(t, file)) {
			for _, key := range l.keys {
				have[key] = true
			}
			if len(l.keys) > 0 && l.comment == "" && l.keys[0] != "name" {
				t.Errorf("%s: %s has no comment", file, l.keys[0])
			}
		}
		for _, key := range allKeys(reflect.TypeFor[Config](), "") {
			if rest, ok := strings.CutPrefix(key, "quant.classes."); ok {
				key = strings.TrimSuffix(key, "."+rest)
			}
			if !have[key] && !slices.ContainsFunc(mapKeys(have), func(k string) bool { return strings.HasPrefix(k, key+".") }) {
				t.Errorf("%s: the key %s is missing; put it into combo.yaml and demo.yaml, then: go test ./configs -run Variants -update", file, key)
			}
		}
	}
}

func mapKeys(m map[string]bool) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// bodyLine is a line of a model file below its header.
type bodyLine struct {
	text    string
	keys    []string // dotted; several in braces
	comment string
	at      int // of the comment
}

var pair = regexp.MustCompile(`(\w+): [^,{}]+`)

func bodyLines(text string) []bodyLine {
	_, body, _ := strings.Cut(text, "\nname:")
	var lines []bodyLine
	section := ""
	for line := range strings.Lines("name:" + body) {
		l := bodyLine{text: strings.TrimSuffix(line, "\n"), at: -1}
		code := l.text
		if before, comment, ok := strings.Cut(l.text, " # "); ok {
			code, l.comment, l.at = before, comment, len(before)+1
		}
		key, value, ok := strings.Cut(strings.TrimSpace(code), ":")
		switch value = strings.TrimSpace(value); {
		case !ok:
		case value == "":
			section = key
		default:
			if code[0] != ' ' {
				section = ""
			}
			key = join(section, key)
			if parts := pair.FindAllStringSubmatch(value, -1); value[0] == '{' && parts != nil {
				for _, p := range parts {
					l.keys = append(l.keys, join(key, p[1]))
				}
			} else {
				l.keys = []string{key}
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// with gives the line with the values of settings for some of its keys.
func (l *bodyLine) with(settings map[string]string, keys []string) string {
	code := l.text
	if l.at >= 0 {
		code = strings.TrimRight(l.text[:l.at], " ")
	}
	for _, key := range l.keys {
		if !slices.Contains(keys, key) {
			continue
		}
		last := key[strings.LastIndexByte(key, '.')+1:]
		code = regexp.MustCompile(`\b`+last+`: [^,{}]+`).ReplaceAllString(code, last+": "+settings[key])
	}
	if l.at < 0 {
		return code
	}
	return code + strings.Repeat(" ", max(l.at-len(code), 2)) + "# " + l.comment
}

// firstOdd is the first line of want that the same line of have is not.
func firstOdd(want, have string) string {
	lines := strings.Split(have, "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(lines) || lines[i] != line {
			return line
		}
	}
	return ""
}

// A variant is combo.yaml, line by line, but for the keys that its header names: nobody need ask what else was changed.
// When combo.yaml changes, go test ./configs -run Variants -update carries the change over.
func TestVariantsAreComboButForTheirChanges(t *testing.T) {
	combo := mustLoad(t, "combo.yaml")
	onDisk := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	lines := bodyLines(onDisk("combo.yaml"))
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	variants := 0
	for _, file := range files {
		text := onDisk(file)
		changes := changesLine.FindStringSubmatch(text)
		if changes == nil {
			if s := sheets[strings.TrimSuffix(file, ".yaml")]; s.with != "" && file != "combo.yaml" {
				t.Errorf("%s does not name its changes of combo.yaml", file)
			}
			continue
		}
		variants++
		keys := strings.Split(changes[1], ", ")
		c := mustLoad(t, file)
		settings := map[string]string{}
		all, err := c.Settings()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			settings[s.Key] = s.Value
		}
		var want strings.Builder
		header, _, _ := strings.Cut(text, "\nname:")
		want.WriteString(header + "\n")
		for _, l := range lines {
			want.WriteString(l.with(settings, append(keys, "name")) + "\n")
		}
		full := want.String()
		if *update {
			if s, ok := sheets[c.Name]; ok {
				full = sizesLine.ReplaceAllString(full, fmt.Sprintf("# %s parameters; a token reads %s bytes of weights", comma(s.parameters()), comma(s.read())))
			}
			if err := os.WriteFile(file, []byte(full), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if full != text {
			t.Errorf("%s is not combo.yaml with the keys of its header changed, first in the line %q; go test ./configs -run Variants -update makes it so",
				file, firstOdd(full, text))
		}
		differences, err := Differences(combo, c)
		if err != nil {
			t.Fatal(err)
		}
		var differ []string
		for _, d := range differences {
			if d.Key != "name" {
				differ = append(differ, d.Key)
			}
		}
		slices.Sort(keys)
		slices.Sort(differ)
		if !slices.Equal(keys, differ) {
			t.Errorf("%s: its header names the changes %v, it differs from combo.yaml in %v", file, keys, differ)
		}
	}
	if variants < 14 {
		t.Errorf("%d variants", variants)
	}
}

var armLine = regexp.MustCompile(`(?m)^  ([\w-]+): \{config: builtin:([\w-]+)\.yaml\}$`)

// The arms of a study are built-in files under their own names, with its baseline among them; the screening has them all.
func TestStudiesNameTheVariants(t *testing.T) {
	files, err := filepath.Glob("sweeps/study*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if !strings.Contains(text, "#   chiplm sweep configs/"+file+" ") {
			t.Errorf("%s lacks its launch command in the header", file)
		}
		arms := map[string]bool{}
		for _, arm := range armLine.FindAllStringSubmatch(text, -1) {
			arms[arm[1]] = true
			if arm[1] != arm[2] || !slices.Contains(Builtin(), arm[2]+".yaml") {
				t.Errorf("%s: the arm %s is builtin:%s.yaml", file, arm[1], arm[2])
			}
		}
		_, after, _ := strings.Cut(text, "\narms:\n")
		if n := strings.Count(after, "\n"); n != len(arms) {
			t.Errorf("%s: %d of the %d lines of arms are understood", file, len(arms), n)
		}
		_, baseline, _ := strings.Cut(text, "\nbaseline: ")
		if !arms[strings.Fields(baseline)[0]] {
			t.Errorf("%s: its baseline is no arm", file)
		}
		if filepath.Base(file) != "study.yaml" {
			continue
		}
		for name, s := range sheets {
			if s.with != "" && name != "esp32-ai" && name != "combo-taught" && name != "combo-large" && !arms[name] { // no text for the first, no teacher for the others
				t.Errorf("%s has no arm %s", file, name)
			}
		}
	}
}
