package compare

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/chiplm/chiplm/eval/results"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, have string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if have != string(want) {
		t.Errorf("%s differs; have\n%s", path, have)
	}
}

func TestGolden(t *testing.T) {
	path := write(t, study()...)
	for name, args := range map[string][]string{
		"study.txt": {path, "--front", "50,100,150,200"},
		"study.md":  {path, "--front", "50,100", "--markdown"},
		"few.txt":   {path, "--arms", "ple*,r?lu", "--sort", "speed"},
	} {
		out, err := call(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, out)
	}
}

func load(t testing.TB, runs ...results.Run) *Set {
	t.Helper()
	s, err := Load([]string{write(t, runs...)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compared(t testing.TB, baseline string, runs ...results.Run) *Report {
	t.Helper()
	r, err := New(load(t, runs...), baseline, "bits", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Report) arm(name string) Arm {
	for _, a := range r.Arms {
		if a.Name == name {
			return a
		}
	}
	return Arm{}
}

// Neither the order of the lines, nor lines that are there twice, nor their spread over files changes the output.
func TestOrderDoesNotMatter(t *testing.T) {
	runs := study()
	want, err := call(t, write(t, runs...))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for range 5 {
		rng.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
		have, err := call(t, write(t, runs[:6]...), write(t, runs[4:]...), write(t))
		if err != nil || have != want {
			t.Errorf("%v\n%s", err, have)
		}
	}
}

// A constant on all scores of one tokenizer changes no difference and no interval.
func TestShiftOfAllScores(t *testing.T) {
	runs := crowd(5)
	first := compared(t, "plain", runs...)
	for i := range runs {
		runs[i].Quality.BitsPerByte += 0.5
		tokens(&runs[i], 3.97)
	}
	second := compared(t, "plain", runs...)
	for i, a := range first.Arms {
		if b := second.Arms[i]; a.Difference != nil {
			near(t, "difference", b.Difference.BitsPerByte.Value, a.Difference.BitsPerByte.Value, 1e-12)
			near(t, "interval", *b.Difference.BitsPerByte.HalfWidth, *a.Difference.BitsPerByte.HalfWidth, 1e-12)
			if b.Verdict != a.Verdict {
				t.Errorf("%q, then %q", a.Verdict, b.Verdict)
			}
		}
	}
}

// Nats per token are bits per byte times ln 2 times the bytes of a token, and so are their differences.
func TestNatsOnlyWithOneTokenizer(t *testing.T) {
	r := compared(t, "plain", study()...)
	d := r.arm("ple").Difference
	near(t, "nats", d.NatsPerToken.Value, r.arm("ple").NatsPerToken.Mean-r.arm("plain").NatsPerToken.Mean, 1e-12)
	near(t, "interval", *d.NatsPerToken.HalfWidth, *d.BitsPerByte.HalfWidth*math.Ln2*3.97, 1e-12)
	if d := r.arm("vocab8192"); d.Difference.NatsPerToken != nil || !strings.Contains(d.Verdict, "bits per byte") || strings.Contains(d.Verdict, "nats") {
		t.Errorf("other tokenizers: %+v", d)
	}
}

func TestVerdicts(t *testing.T) {
	half := 0.004
	nats := func(v float64) *Difference {
		e := Estimate{Value: v, HalfWidth: &half, Method: Pooled, Degrees: 4}
		return &Difference{NatsPerToken: &e}
	}
	for want, d := range map[string]*Difference{
		"better by 0.021 +- 0.004 nats, costs 3.0 % more bytes":                         {NatsPerToken: nats(-0.021).NatsPerToken, Read: 1.03},
		"better on both: by 0.021 +- 0.004 nats, saves 12 % of the bytes, 8.0 % faster": {NatsPerToken: nats(-0.021).NatsPerToken, Read: 0.88, Speed: 1.08},
		"worse on both: by 0.021 +- 0.004 nats, reads the same bytes, 15 % slower":      {NatsPerToken: nats(0.021).NatsPerToken, Read: 1.001, Speed: 0.85},
		"worse by 0.021 +- 0.004 nats, saves 50 % of the bytes, 2.0 times as fast":      {NatsPerToken: nats(0.021).NatsPerToken, Read: 0.5, Speed: 2},
		"no difference larger than the noise (-0.003 +- 0.004 nats), as fast":           {NatsPerToken: nats(-0.003).NatsPerToken, Speed: 1},
		"no difference larger than the noise (+0.004 +- 0.004 nats)":                    nats(0.004),
		"better by 0.1000 bits per byte in one run each, so perhaps by chance":          {BitsPerByte: Estimate{Value: -0.1}},
		"the same score in one run each, costs 7.0 times the bytes":                     {Read: 7},
	} {
		if have := d.verdict(); have != want {
			t.Errorf("%q, want %q", have, want)
		}
	}
}

func TestDecimals(t *testing.T) {
	for half, want := range map[float64]string{0.0041: "0.004", 0.0014: "0.0014", 0.00062: "0.0006", 0.012: "0.012", 0.3: "0.300", 0: "0.0000"} {
		if have := fmt.Sprintf("%.*f", decimals(half), half); have != want {
			t.Errorf("%g: %s, want %s", half, have, want)
		}
	}
}

func TestWhatIsNoted(t *testing.T) {
	has := func(r *Report, part string) {
		t.Helper()
		if !strings.Contains(strings.Join(r.Notes, "\n"), part) {
			t.Errorf("no note of %q in %q", part, r.Notes)
		}
	}
	quiet := crowd(4)
	if r := compared(t, "plain", quiet...); len(r.Notes) != 0 {
		t.Errorf("notes without a reason: %q", r.Notes)
	}
	for part, change := range map[string]func(*results.Run){
		"programs differ between runs: chiplm 0.1 (7), chiplm 0.2 (1)":   func(r *results.Run) { r.Program = "chiplm 0.2" },
		"training texts differ between runs":                             func(r *results.Run) { r.CorpusSHA256 = "other" },
		"teachers differ between runs: float (1), none (7); what":        func(r *results.Run) { r.Teacher = "float" },
		"training tokens differ between runs: 1,000,000 (7), 4,000,000 ": func(r *results.Run) { r.Training.Tokens = 4e6 },
		"ways of scoring differ":                                         func(r *results.Run) { r.Quality.ScoredBy = "graph" },
		"chips of the predicted speeds differ":                           func(r *results.Run) { r.Cost.Target = "esp32p4" },
		"tokenizers differ":                                              func(r *results.Run) { r.TokenizerSHA256 = "other" },
		"is much noisier than the rest":                                  func(r *results.Run) { r.Quality.BitsPerByte += 0.5 },
	} {
		runs := crowd(4)
		change(&runs[5])
		has(compared(t, "plain", runs...), part)
	}
	var paired []results.Run // whose intervals no other arm widens
	for seed := range int64(3) {
		paired = append(paired, made("plain", seed, 0.9+1e-5*float64(seed)), made("x", seed, 0.8+1e-5*float64(seed*seed)), made("wild", seed, 0.7+0.2*float64(seed)))
	}
	if r := compared(t, "plain", paired...); len(r.Notes) != 0 || r.noisiest() != "wild" {
		t.Errorf("%q, noisiest %q", r.Notes, r.noisiest())
	}
	lost := made("variant-02-of-many", 3, 0)
	lost.Quality, lost.Failure = results.Quality{}, "the loss is\nnot finite"
	has(compared(t, "plain", append(quiet, lost)...), "variant-02-of-many (seed 3) failed and is in no mean: the loss is?not finite")
	again, early := made("plain", 2, 0.9), lost
	early.Arm, early.Seed, early.ArmSHA256 = again.Arm, again.Seed, again.ArmSHA256
	if s, err := Load([]string{write(t, again), write(t, early)}); err != nil || len(s.Notes) != 0 { // the other file has its score
		t.Errorf("%v, %q", err, s.Notes)
	}
	has(compared(t, "plain", append(quiet, made("once", 1, 0.9))...), "one run only: once.")
	has(compared(t, "", quiet...), "no baseline, so no differences")
	again = made("plain", 1, 0.5)
	r := compared(t, "plain", append(quiet, again)...)
	has(r, "plain (seed 1) is there more than once with other scores; the last counts")
	if v := r.arm("plain").BitsPerByte.Values; len(v) != 2 || v[0] != 0.5 {
		t.Errorf("%v", v)
	}
	has(compared(t, "plain", made("plain", 1, 0.5), made("plain", 2, 0.5), made("x", 1, 0.5)), "did the seed reach the training?")
}

// Sweeps may use one name for several things, which are then told apart.
func TestNamesOfSeveralSweeps(t *testing.T) {
	one, two := made("combo", 1, 0.9), made("combo", 1, 0.8)
	two.Sweep, two.ArmSHA256, two.Training.Tokens = "decide", "b", 4e6
	s := load(t, one, two, made("plain", 1, 1))
	if have := strings.Join(s.names(), " "); have != "decide/combo plain screen/combo" {
		t.Error(have)
	}
	if _, err := s.find("combo"); !isUsage(err) || !strings.Contains(err.Error(), "decide/combo or screen/combo") {
		t.Error(err)
	}
	if name, err := s.find("plain"); err != nil || name != "plain" {
		t.Error(name, err)
	}
	two.Sweep = "screen"
	if have := strings.Join(load(t, one, two).names(), " "); have != "screen/combo@acombo screen/combo@b" {
		t.Error(have)
	}
	strange, other := made("x\x01", 1, 0.9), made("x\x02", 1, 0.8)
	strange.ArmSHA256, other.ArmSHA256 = "", ""
	if names := load(t, strange, other).names(); names[0] == names[1] {
		t.Error(names)
	}
}

// Where lines of a sweep disagree about its baseline, the last counts; where sweeps do, none is chosen.
func TestBaseline(t *testing.T) {
	old, now, other := made("a", 1, 0.9), made("b", 1, 0.8), made("c", 1, 0.7)
	old.Baseline, now.Baseline, other.Baseline, other.Sweep = "a", "b", "c", "another"
	for _, c := range []struct {
		want string
		runs []results.Run
	}{{"b", []results.Run{old, now}}, {"a", []results.Run{now, old}}, {"c", []results.Run{other}}, {"", []results.Run{old, other}}} {
		if s := load(t, c.runs...); s.Baseline != c.want {
			t.Errorf("%q, want %q", s.Baseline, c.want)
		}
	}
}

func TestOrders(t *testing.T) {
	for order, want := range map[string]string{
		"bits": "vocab8192 float combo ple relu plain layers12", "name": "combo float layers12 plain ple relu vocab8192",
		"speed": "relu combo plain vocab8192 ple layers12 float", "read": "relu combo vocab8192 layers12 plain ple float",
		"parameters": "combo float layers12 plain relu ple vocab8192", "sweep": "plain ple relu combo layers12 vocab8192 float",
	} {
		runs := study()
		for i := range runs {
			runs[i].Order = i
		}
		r, err := New(load(t, runs...), "plain", order, nil)
		if err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, a := range r.Arms {
			have = append(have, a.Name)
		}
		if strings.Join(have, " ") != want {
			t.Errorf("%s: %q, want %q", order, have, want)
		}
	}
}

func TestFront(t *testing.T) {
	r, err := New(load(t, study()...), "plain", "bits", []float64{1, 50, 82, 112, 117.5})
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, f := range r.Front {
		have = append(have, f.Arm)
	}
	if want := "vocab8192 vocab8192 combo combo "; strings.Join(have, " ") != want {
		t.Errorf("%q, want %q", strings.Join(have, " "), want)
	}
	if have := strings.Join(r.Pareto, " "); have != "vocab8192 combo relu" {
		t.Error(have)
	}
	// By definition, of random arms: none of the front is beaten, and each other is.
	rng := rand.New(rand.NewPCG(9, 10))
	for range 100 {
		var arms []Arm
		for i := range 12 {
			a := Arm{Name: fmt.Sprint(i), TextPerSecond: float64(rng.IntN(6))}
			a.BitsPerByte.Mean = float64(1 + rng.IntN(6))
			arms = append(arms, a)
		}
		on := " " + strings.Join(pareto(arms), " ") + " "
		for _, a := range arms {
			beaten := a.TextPerSecond == 0
			for _, b := range arms {
				faster, better := b.TextPerSecond-a.TextPerSecond, a.BitsPerByte.Mean-b.BitsPerByte.Mean
				beaten = beaten || faster >= 0 && better >= 0 && faster+better > 0
			}
			if beaten == strings.Contains(on, " "+a.Name+" ") {
				t.Fatalf("%+v, on the front: %s", a, on)
			}
		}
	}
}

// All forms hold every arm; a terminal's lines keep to 100 columns, whatever the names.
func TestEveryFormHoldsEveryArm(t *testing.T) {
	odd := []string{"a|b", "<script>alert(1)</script>", "ключ", "模型四位元模型四位元模型四位元", "a\nb\x1b[31m", "`x` *y* _z_ [q](w)", strings.Repeat("long", 40), "\"q\" & 'r'"}
	runs := crowd(20)
	for i, name := range odd {
		runs = append(runs, made(name, 1, 0.9+float64(i)/1000), made(name, 2, 0.9+float64(i)/1000))
	}
	path := write(t, runs...)
	out, err := call(t, path, "--front", "50,90")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, "variant-"); n < 3*19-2 {
		t.Errorf("%d mentions of 19 variants in\n%s", n, out)
	}
	narrow(t, out)
	page, err := call(t, path, "--markdown")
	if err != nil || strings.ContainsRune(page, '\x1b') || strings.Contains(page, "<script") {
		t.Errorf("%v\n%s", err, page)
	}
	for _, want := range []string{`a\|b`, "&lt;script>", `\*y\* \_z\_ \[q](w)`} {
		if !strings.Contains(page, want) {
			t.Errorf("Markdown without %q", want)
		}
	}
	var r Report
	text, err := call(t, path, "--json")
	if err != nil || json.Unmarshal([]byte(text), &r) != nil || len(r.Arms) != 28 {
		t.Errorf("%v, %d arms", err, len(r.Arms))
	}
}

func narrow(t testing.TB, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if n := uniseg.StringWidth(line); n > columns || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

// A folder stands for the results in it; of one without, the message says where there are some.
func TestFolders(t *testing.T) {
	path := write(t, study()...)
	want, err := call(t, path)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(path)
	if have, err := call(t, folder); err != nil || have != want {
		t.Errorf("%v\n%s", err, have)
	}
	empty := t.TempDir()
	for name, part := range map[string]string{
		empty:                     "there is no results.jsonl in the folder " + empty + "; name the folder of a sweep",
		filepath.Dir(folder):      "there is no results.jsonl in the folder " + filepath.Dir(folder) + "; there is one in " + folder,
		filepath.Join(empty, "x"): "no such file",
	} {
		if out, err := call(t, name); err == nil || !strings.Contains(err.Error(), part) || !errors.Is(err, os.ErrNotExist) || out != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where tokenizers differ, tokens a second are not text a second: every form says so below the table, and names who is better
// at the same speed of text. Where they do not, nothing is said.
func TestFrontOfSeveralTokenizers(t *testing.T) {
	long, short := made("long", 1, 0.90), made("short", 1, 0.95)
	for _, r := range []*results.Run{&long, &short} {
		r.Baseline = "long"
	}
	speed(&long, 90)   // 90 * 5 = 450 bytes of text a second
	speed(&short, 110) // 110 * 3 = 330
	long.TokenizerSHA256 = "t8192"
	tokens(&long, 5)
	tokens(&short, 3)
	page := pageOf(t, long, short)
	for _, form := range [][]string{nil, {"--markdown"}} {
		out, err := call(t, append([]string{write(t, long, short), "--front", "80,100"}, form...)...)
		if err != nil {
			t.Fatal(err)
		}
		out = strings.Join(strings.Fields(out), " ")
		for _, want := range []string{"whose tokens are 3.00 to 5.00 bytes of text", "short; better, and not slower in text: long (0.9000, 450.0 B/s)", "450.0"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q: no %q in\n%s", form, want, out)
			}
		}
	}
	if !strings.Contains(page, "whose tokens are 3.00 to 5.00 bytes of text") {
		t.Error("the page does not tell of the tokenizers")
	}
	out, err := call(t, write(t, crowd(5)...), "--front", "50,89")
	if err != nil || strings.Contains(out, "bytes of text:") || strings.Contains(out, "not slower in text") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What every neuron read comes to and what is read have each a name of their own, as in a sweep's dry run.
func TestWeightsAreNotReads(t *testing.T) {
	out, err := call(t, write(t, study()...), "--markdown")
	if err != nil || !strings.Contains(out, "| weights | read/token |") || !strings.Contains(out, "| 1.02 MB | 731.0 kB |") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOneArmOneRun(t *testing.T) {
	for _, runs := range [][]results.Run{{made("plain", 1, 0.9)}, {made("other", 1, 0.9)}, {made("plain", 1, 0.9), made("plain", 2, 0.8)}} {
		out, err := call(t, write(t, runs...), "--front", "50")
		if err != nil || strings.Contains(out, "verdict") || strings.Contains(out, "NaN") || !strings.Contains(out, runs[0].Arm) {
			t.Errorf("%v\n%s", err, out)
		}
	}
	out, err := call(t, write(t, made("plain", 1, 0.9), made("x", 1, 0.8)))
	if err != nil || !strings.Contains(out, "in one run each, so perhaps by chance") || !strings.Contains(strings.Join(strings.Fields(out), " "), "one run each gives none") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRefusals(t *testing.T) {
	good := write(t, study()...)
	other := made("other", 1, 0.9)
	other.HeldOut.SHA256 = "another"
	again := made("plain", 1, 1.000) // the same run on other stories does not take the place of its score
	again.HeldOut.SHA256 = "another"
	var anew []results.Run
	for _, r := range study() {
		r.HeldOut.Bytes++
		anew = append(anew, r)
	}
	neither := made("plain", 1, 0.9)
	neither.Quality = results.Quality{}
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	if err := os.WriteFile(broken, []byte("{\"arm\": 5}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	change := func(f func(*results.Run)) string {
		r := made("x", 1, 0.9)
		f(&r)
		return write(t, r)
	}
	for _, c := range []struct {
		want  string
		usage bool
		args  []string
	}{
		{"requires at least 1 arg", false, nil},
		{"no such file", false, []string{"nothing-here.jsonl"}},
		{"broken.jsonl:1: not a line of results", false, []string{broken}},
		{"such scores do not compare", false, []string{good, write(t, other)}},
		{"such scores do not compare", false, []string{good, write(t, again)}},
		{"such scores do not compare", false, []string{good, write(t, anew...), "--baseline", "plain"}},
		{"no run with a score", false, []string{write(t)}},
		{":1: not a line of results: it has neither a score (quality.bits_per_byte) nor a failure; mend the line, or remove it", false, []string{write(t, neither)}},
		{"bits_per_byte is -1", false, []string{change(func(r *results.Run) { r.Quality.BitsPerByte = -1 })}},
		{"text_bytes_per_token is 0", false, []string{change(func(r *results.Run) { r.Quality.TextBytesPerToken = 0 })}},
		{"not a possible figure", false, []string{change(func(r *results.Run) { r.Cost.TokensPerSecond = 1e300 })}},
		{"not a possible loss", false, []string{change(func(r *results.Run) { r.Curve[3].Loss = 1e300 })}},
		{"it names no arm", false, []string{change(func(r *results.Run) { r.Arm = "" })}},
		{"the arm has no name", false, []string{change(func(r *results.Run) { r.Arm = " " })}},
		{`--baseline "frob" is no arm; there are combo, float`, true, []string{good, "--baseline", "frob"}},
		{"--baseline is empty", true, []string{good, "--baseline="}},
		{`--arms "frob*" fits no arm`, true, []string{good, "--arms", "frob*"}},
		{`--arms "[" is no pattern`, true, []string{good, "--arms", "["}},
		{`--sort "frob" is unknown; there are bits, name, parameters`, true, []string{good, "--sort", "frob"}},
		{"--front 0: wants tokens per second above 0", true, []string{good, "--front", "50,0"}},
		{"--front NaN", true, []string{good, "--front", "NaN"}},
		{"--html is empty", true, []string{good, "--html="}},
		{"write the page", false, []string{good, "--html", filepath.Join(t.TempDir(), "no", "such", "folder.html")}},
		{"not a regular file but a folder", false, []string{good, "--html", t.TempDir()}},
		{"--markdown and --json contradict", true, []string{good, "--markdown", "--json"}},
	} {
		out, err := call(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || isUsage(err) != c.usage || out != "" {
			t.Errorf("%q: %v, usage error %v, output %q", c.args, err, isUsage(err), out)
		}
	}
	// What is not shown need not compare.
	if _, err := call(t, good, write(t, other), "--arms", "combo,ple"); err != nil {
		t.Error(err)
	}
}
