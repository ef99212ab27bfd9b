package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/eval"
	"github.com/chiplm/chiplm/eval/results"
	"github.com/chiplm/chiplm/train"
)

// childVariable makes the test binary run `chiplm sweep` with the arguments it is given.
const childVariable = "CHIPLM_SWEEP_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	cmd := Command()
	cmd.SetArgs(os.Args[1:])
	if err := cmd.ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// The model of these tests: twelve steps of four micro-batches.
const tinyModel = `
vocab_size: 300
d_model: 16
n_layers: 1
n_heads: 2
d_ff: 24
context_length: 16
ple_dim: 8
quant: {weights: {bits: 4, group: 32, scale: f32}}
train: {tokens: 1536, batch_tokens: 128, micro_batch: 2, lr: 0.01, valid_every: 4, valid_tokens: 300,
  sample_every: 0, save_every: 2, keep_last: 2}
`

const tinyStudy = `
corpus: builtin:1:60
stories: 2
seeds: [1, 2]
config: tiny.yaml
arms:
  tiny: {}
  wide: {set: {d_ff: 32}}
`

// place is a folder with a study and its model.
type place struct {
	t       *testing.T
	folder  string
	options Options
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("CHIPLM_CACHE", filepath.Join(dir, "cache"))
	if err := os.WriteFile(filepath.Join(dir, "tiny.yaml"), []byte(tinyModel), 0o644); err != nil {
		t.Fatal(err)
	}
	return &place{t, dir, Options{Out: filepath.Join(dir, "sweeps"), Target: "esp32s3", Workers: 2}}
}

// study is a study of a text, called study.
func (p *place) study(text string) *Study {
	p.t.Helper()
	s, err := Parse(filepath.Join(p.folder, "study.yaml"), []byte(text))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// run runs a study that comes to its end, and gives its lines.
func (p *place) run(text string) []results.Run {
	p.t.Helper()
	out, err := Run(p.t.Context(), p.study(text), p.options, silent{})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.lines(out)
}

func (p *place) lines(out *Outcome) []results.Run {
	p.t.Helper()
	runs, err := results.Read(out.Results)
	if err != nil {
		p.t.Fatal(err)
	}
	return runs
}

// same is the runs in order of their names, without what another try may change.
func same(runs []results.Run) []results.Run {
	out := slices.Clone(runs)
	for i := range out {
		out[i].Training.Seconds, out[i].Training.Workers, out[i].Folder = 0, 0, filepath.Base(out[i].Folder)
		out[i].Program = ""
	}
	slices.SortFunc(out, func(a, b results.Run) int { return strings.Compare(a.Folder, b.Folder) })
	return out
}

func (p *place) mustEqual(got, want []results.Run) {
	p.t.Helper()
	got, want = same(got), same(want)
	if len(got) != len(want) {
		p.t.Fatalf("%d runs, want %d", len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			p.t.Errorf("%s:\n%+v\nwant\n%+v", want[i].Folder, got[i], want[i])
		}
	}
}

// TestAKilledSweepWritesTheSameLines kills a sweep at moments of all kinds, and starts it again each time with another
// number of workers.
func TestAKilledSweepWritesTheSameLines(t *testing.T) {
	p := newPlace(t)
	const study = tinyStudy + "  taught: {teacher: wide, set: {train.distill: 0.5}}\n"
	want := p.run(study)
	if len(want) != 6 {
		t.Fatalf("%d runs", len(want))
	}

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(p.folder, "study.yaml")
	if err := os.WriteFile(file, []byte(study), 0o644); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(p.folder, "killed")
	rng := rand.New(rand.NewPCG(3, 4))
	kills, marks := 0, 0
	for attempt := 0; ; attempt++ {
		if attempt == 60 {
			t.Fatal("the sweep does not come to its end")
		}
		child := exec.Command(self, file, "--out", killed, "--workers", fmt.Sprint(1+attempt%3))
		child.Env = append(os.Environ(), childVariable+"=1")
		heard := &counter{}
		child.Stderr = heard
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if kills < 8 { // at a random moment after something has changed; from then on it is left alone
			marks = 1 + rng.IntN(4)
			waitFor(func() bool { return heard.lines() > marks || child.ProcessState != nil })
			time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
			_ = child.Process.Kill() // too late is no harm: Wait tells
		}
		if err := child.Wait(); err == nil {
			break
		} else if child.ProcessState.ExitCode() >= 0 {
			t.Fatalf("attempt %d: %v\n%s", attempt, err, heard.String())
		}
		kills++
	}
	if kills < 3 {
		t.Errorf("the sweep was killed %d times only", kills)
	}
	got, err := results.Read(filepath.Join(killed, "study", ResultsFile))
	if err != nil {
		t.Fatal(err)
	}
	p.mustEqual(got, want)
}

// counter counts the lines that a process writes.
type counter struct {
	mu sync.Mutex
	bytes.Buffer
}

func (c *counter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Buffer.Write(b)
}

func (c *counter) lines() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Count(c.Bytes(), []byte("\n"))
}

// waitFor waits until something holds, at most half a minute.
func waitFor(holds func() bool) {
	for end := time.Now().Add(30 * time.Second); !holds() && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
}

// events is a display that remembers the changes, and may do something at them.
type events struct {
	silent
	mu  sync.Mutex
	all []string
	at  func(event string)
}

func (e *events) changed(j *job) {
	s := j.status()
	e.mu.Lock()
	event := j.name + " " + string(s.State)
	e.all = append(e.all, event)
	e.mu.Unlock()
	if e.at != nil {
		e.at(event)
	}
}

// TestOnlyWhatIsNewIsTrained: a second sweep does nothing; arms and seeds that are added are all that it trains.
func TestOnlyWhatIsNewIsTrained(t *testing.T) {
	p := newPlace(t)
	first := strings.Replace(tinyStudy, "[1, 2]", "[1]", 1)
	p.run(first)
	file := filepath.Join(p.options.Out, "study", ResultsFile)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	again := func(text string) (started []string) {
		t.Helper()
		e := &events{}
		if _, err := Run(t.Context(), p.study(text), p.options, e); err != nil {
			t.Fatal(err)
		}
		for _, event := range e.all {
			if name, ok := strings.CutSuffix(event, " training"); ok {
				started = append(started, name)
			}
		}
		slices.Sort(started)
		return started
	}
	if started := again(first); len(started) > 0 {
		t.Errorf("repeated: %v", started)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("%v, the results have changed", err)
	}
	more := strings.Replace(tinyStudy, "arms:\n", "arms:\n  swiglu: {set: {activation: swiglu, train.tokens: 640}}\n", 1)
	if started := again(more); !slices.Equal(started, []string{"swiglu-s1", "swiglu-s2", "tiny-s2", "wide-s2"}) {
		t.Errorf("trained: %v", started)
	}
	after, err := os.ReadFile(file)
	if err != nil || !bytes.HasPrefix(after, before) || bytes.Count(after, []byte("\n")) != 6 {
		t.Errorf("%v, the results are\n%s", err, after)
	}
	// The lines say where the arms stand in the file, and who is the baseline.
	runs, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs[2:] {
		if want := map[string]int{"swiglu": 0, "tiny": 1, "wide": 2}[r.Arm]; r.Order != want || r.Baseline != "swiglu" {
			t.Errorf("%s: order %d, baseline %s", r.Arm, r.Order, r.Baseline)
		}
	}
}

// TestLinesThatWereEdited: a line that an editor left without its end counts; one without a score is named, and not taken for
// a run that is done, nor written over.
func TestLinesThatWereEdited(t *testing.T) {
	p := newPlace(t)
	text := strings.Replace(tinyStudy, "[1, 2]", "[1]", 1)
	want := p.run(text)
	file := filepath.Join(p.options.Out, "study", ResultsFile)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.TrimSuffix(whole, []byte("\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	p.mustEqual(p.run(text), want)
	more := text + "  third: {set: {d_ff: 40}}\n"
	if runs := p.run(more); len(runs) != 3 {
		t.Errorf("%d runs", len(runs))
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(after, whole) {
		t.Errorf("%v: lines that were there changed", err)
	}
	for _, end := range []string{"\n", ""} {
		bare := append(slices.Clone(whole), `{"arm":"third","seed":1}`+end...)
		if err := os.WriteFile(file, bare, 0o644); err != nil {
			t.Fatal(err)
		}
		e := &events{}
		_, err := Run(t.Context(), p.study(more), p.options, e)
		if err == nil || !strings.Contains(err.Error(), file+":3: not a line of results: it has neither a score") || !strings.Contains(err.Error(), "or remove it") || len(e.all) > 0 {
			t.Errorf("%v; %v", err, e.all)
		}
		if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, bare) {
			t.Errorf("%v: the file changed", err)
		}
	}
	if err := os.WriteFile(file, whole, 0o644); err != nil { // the line is removed: only its run is scored
		t.Fatal(err)
	}
	if runs := p.run(more); len(runs) != 3 {
		t.Errorf("%d runs", len(runs))
	}
}

// TestSameAsByHand: a line says what `chiplm train` and `chiplm eval bpb` say.
func TestSameAsByHand(t *testing.T) {
	p := newPlace(t)
	runs := p.run(strings.Replace(tinyStudy, "[1, 2]", "[7]", 1))
	r := runs[slices.IndexFunc(runs, func(r results.Run) bool { return r.Arm == "wide" })]

	o := train.Options{Config: filepath.Join(p.folder, "tiny.yaml"), Sets: []string{"d_ff=32", "train.seed=7"}, Corpus: "builtin:1:60",
		Out: filepath.Join(p.folder, "runs"), Name: "wide-s7", Workers: 2}
	sum, err := train.Run(t.Context(), o, io.Discard, true)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	bpb := eval.Command()
	bpb.SetArgs([]string{"bpb", sum.Run, "--n", "2", "--json"})
	bpb.SetOut(&text)
	if err := bpb.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var report eval.Report
	if err := json.Unmarshal(text.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	m := report.Models[0]
	if r.ModelSHA256 != sum.ModelSHA256 || r.ConfigSHA256 != sum.ConfigHash || r.TokenizerSHA256 != sum.TokenizerHash ||
		r.CorpusSHA256 != sum.CorpusHash || r.Training.Tokens != sum.Tokens || r.Training.Steps != sum.Step {
		t.Errorf("line %+v\nsummary %+v", r, sum)
	}
	q := r.Quality
	if q.ScoredBy != "engine" || q.BitsPerByte != m.BitsPerByte || q.BitsPerByteWithEnd != m.BitsPerByteWithEnd ||
		q.NatsPerToken != m.NatsPerToken || q.Tokens != m.Tokens || q.TextBytesPerToken != m.TextBytesPerToken {
		t.Errorf("quality %+v, by hand %+v", q, m)
	}
	c := r.Cost
	if c.Parameters != m.Parameters || c.ImageBytes != m.ImageBytes || c.BytesPerToken != m.BytesReadPerToken {
		t.Errorf("cost %+v, by hand %+v", c, m)
	}
	if c.MeasuredPer <= 0 || c.MeasuredPer >= float64(c.BytesPerToken) || c.LiveNeurons <= 0 || c.LiveNeurons >= 1 ||
		c.Target != "esp32s3" || c.TokensPerSecond <= 0 || c.TextPerSecond != c.TokensPerSecond*q.TextBytesPerToken {
		t.Errorf("cost %+v", c)
	}
	h := r.HeldOut
	if h.SHA256 != report.Stories.SHA256 || h.Bytes != report.Stories.Bytes || h.Stories != int64(report.Stories.Count) {
		t.Errorf("held out %+v, by hand %+v", h, report.Stories)
	}
	if last := r.ValidLoss[len(r.ValidLoss)-1]; last.Loss != *sum.ValidLoss || last.Tokens != sum.Tokens || len(r.ValidLoss) != 3 {
		t.Errorf("validations %+v, by hand %v", r.ValidLoss, *sum.ValidLoss)
	}
	if last := r.Curve[len(r.Curve)-1]; len(r.Curve) != 12 || last.Loss < *sum.Loss-1e-5 || last.Loss > *sum.Loss+1e-5 || r.Training.Seconds <= 0 {
		t.Errorf("curve %+v, the last loss by hand %v; %v s", r.Curve, *sum.Loss, r.Training.Seconds)
	}
}

// TestADivergingArm is written down, stops nobody, and is tried again only when asked.
func TestADivergingArm(t *testing.T) {
	p := newPlace(t)
	text := strings.Replace(tinyStudy, "[1, 2]", "[1]", 1) + "  wild: {set: {train.lr: 100, train.clip: 0}}\n"
	attempt := func(o Options, lines int) {
		t.Helper()
		out, err := Run(t.Context(), p.study(text), o, silent{})
		if err == nil || !strings.Contains(err.Error(), "1 of 3 runs diverged") || out.Failed != 1 || out.Done != 2 || out.Broken != 0 {
			t.Fatalf("%v, %+v", err, out)
		}
		whole, err := os.ReadFile(out.Results)
		if err != nil || bytes.Count(whole, []byte("\n")) != lines {
			t.Fatalf("%v, results:\n%s", err, whole)
		}
		bad, err := results.Failures(out.Results)
		if err != nil || len(bad) != 1 || bad[0].Arm != "wild" || !strings.Contains(bad[0].Failure, "not finite") || bad[0].HeldOut.Bytes == 0 {
			t.Errorf("%v, failures %+v", err, bad)
		}
		if len(p.lines(out)) != 2 {
			t.Error("the others are not done")
		}
	}
	attempt(p.options, 3)
	attempt(p.options, 3)
	p.options.Retry = true
	attempt(p.options, 4)
}

func TestOneSweepAtATime(t *testing.T) {
	p := newPlace(t)
	e := &events{}
	var second error
	var once sync.Once
	e.at = func(string) {
		once.Do(func() { _, second = Run(t.Context(), p.study(tinyStudy), p.options, silent{}) })
	}
	if _, err := Run(t.Context(), p.study(tinyStudy), p.options, e); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(second, checkpoints.ErrLocked) || !strings.Contains(second.Error(), "another sweep is at work in") {
		t.Errorf("a second sweep: %v", second)
	}
	if _, err := Run(t.Context(), p.study(tinyStudy), p.options, silent{}); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestNothingIsMixed: names that stand for something else than before are refused, before anything is trained or removed.
func TestNothingIsMixed(t *testing.T) {
	p := newPlace(t)
	base := strings.Replace(tinyStudy, "[1, 2]", "[1]", 1)
	want := p.run(base)
	ctx, cancel := context.WithCancel(t.Context())
	e := &events{}
	half := base + "  half: {set: {d_ff: 40, train.tokens: 100000000}}\n"
	e.at = func(event string) {
		if event == "half-s1 training" {
			go func() {
				waitFor(func() bool {
					found, _ := filepath.Glob(filepath.Join(p.options.Out, "study", "runs", "half-s1", "step-*"))
					return len(found) > 0
				})
				cancel()
			}()
		}
	}
	if _, err := Run(ctx, p.study(half), p.options, e); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"an arm that is done": {"{d_ff: 32}", "{d_ff: 36}", "wide-s1: d_ff was 32 and is now 36"},
		"an arm half-trained": {"d_ff: 40", "d_ff: 44", "half-s1: d_ff was 40 and is now 44"},
		"all arms":            {"config: tiny.yaml", "config: tiny.yaml\nset: {train.lr: 0.02}", "train.lr was 0.01 and is now 0.02"},
		"the corpus":          {"builtin:1:60", "builtin:1:60#train", "was trained on"},
		"the held-out text":   {"builtin:1:60", "builtin:2:60", "such scores do not compare"},
		"fewer stories":       {"stories: 2", "stories: 1", "such scores do not compare"},
	} {
		text := strings.Replace(half, c.old, c.new, 1)
		if name == "the corpus" {
			text += "valid: \"builtin:1:60#held-out\"\n"
			text = strings.Replace(text, "builtin:1:60#train", "builtin:3:60", 1)
		}
		e := &events{}
		_, err := Run(t.Context(), p.study(text), p.options, e)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(e.all) > 0 || strings.Contains(err.Error(), "this sweep (seed") {
			t.Errorf("%s: %v; %v", name, err, e.all)
		}
	}
	// What does not change the weights may change.
	p.mustEqual(p.run(base+"set: {train.save_every: 5, train.keep_last: 1}\n"), want)
}

// TestWhatIsKept: the last checkpoint, without moments; a run whose line is gone is scored again, not trained.
func TestWhatIsKept(t *testing.T) {
	p := newPlace(t)
	text := strings.Replace(tinyStudy, "[1, 2]", "[1]", 1)
	want := p.run(text)
	for _, r := range want {
		found, err := filepath.Glob(filepath.Join(r.Folder, "step-*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v, checkpoints %v", err, found)
		}
		ck, err := checkpoints.Load(r.Folder)
		if err != nil || ck.Moments != nil || ck.ModelSHA256 != r.ModelSHA256 {
			t.Errorf("%v, moments: %v, weights %s, the line says %s", err, ck.Moments != nil, ck.ModelSHA256, r.ModelSHA256)
		}
	}
	if err := os.Remove(filepath.Join(p.options.Out, "study", ResultsFile)); err != nil {
		t.Fatal(err)
	}
	e := &events{}
	out, err := Run(t.Context(), p.study(text), p.options, e)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(e.all, func(s string) bool { return strings.HasSuffix(s, " training") }) {
		t.Errorf("trained again: %v", e.all)
	}
	p.mustEqual(p.lines(out), want)
}

// TestARunMovesToIdleWorkers and gives what it gives on one.
func TestARunMovesToIdleWorkers(t *testing.T) {
	p := newPlace(t)
	text := strings.Replace(tinyStudy, "[1, 2]", "[1]", 1)
	text = strings.Replace(text, "{d_ff: 32}", "{d_ff: 32, train.tokens: 51200}", 1)
	want := p.run(text)
	p.options.Out = filepath.Join(p.folder, "moved")
	s, err := open(t.Context(), p.study(text), p.options)
	if err != nil {
		t.Fatal(err)
	}
	s.worthMoving = 0
	e := &events{}
	out, err := s.run(t.Context(), e, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p.mustEqual(p.lines(out), want)
}

func TestShare(t *testing.T) {
	for _, c := range [][3]int{{8, 3, 2}, {6, 2, 3}, {3, 1, 3}, {2, 5, 1}, {1, 1, 1}, {16, 1, 16}, {4, 4, 1}} {
		if got := share(c[0], c[1]); got != c[2] {
			t.Errorf("%d free, %d waiting: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// TestSmooth: every step counts once, in order, and a curve of few steps is as it is.
func TestSmooth(t *testing.T) {
	for n := 1; n < 400; n++ {
		var steps []results.Point
		sum := 0.0
		for i := range n {
			steps = append(steps, results.Point{Tokens: int64(i + 1), Loss: float64(i * i)})
			sum += float64(i * i)
		}
		curve := smooth(steps, curvePoints)
		before, total := int64(0), 0.0
		for _, p := range curve {
			total += p.Loss * float64(p.Tokens-before)
			before = p.Tokens
		}
		if len(curve) != min(n, curvePoints) || before != int64(n) || total < sum*(1-1e-9) || total > sum*(1+1e-9) {
			t.Fatalf("%d steps: %d points to %d, sum %v, want %v", n, len(curve), before, total, sum)
		}
	}
}
