package train

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chiplm/chiplm/configs"
)

func TestMetricsAreTruncatedToTheCheckpoint(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, MetricsFile)
	lines := `{"step":1,"tokens":10,"loss":2}
{"step":2,"tokens":20,"loss":1.5}
{"step":2,"tokens":20,"valid_bpb":1}
not json
{"step":3,"tokens":30,"loss":1.25}
{"step":4,"tok`
	if err := os.WriteFile(path, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := OpenMetrics(dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Step(StepResult{Step: 3, Loss: 1.125, LR: 0.001, GradNorm: 0.5}, 30, 0.75, 1000); err != nil {
		t.Fatal(err)
	}
	text := "He said, \"no\".\n"
	if err := m.Write(Record{Step: 3, Tokens: 30, Sample: &text}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	want := `{"step":1,"tokens":10,"loss":2}
{"step":2,"tokens":20,"loss":1.5}
{"step":2,"tokens":20,"valid_bpb":1}
{"step":3,"tokens":30,"loss":1.125,"bpb":0.75,"lr":0.001,"grad_norm":0.5,"tokens_per_second":1000}
{"step":3,"tokens":30,"sample":"He said, \"no\".\n"}
`
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%v, the metrics are\n%s\nwant\n%s", err, got, want)
	}
	records, err := ReadMetrics(dir)
	if err != nil || len(records) != 5 || *records[3].Loss != 1.125 || *records[4].Sample != text {
		t.Errorf("%v, read %+v", err, records)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

func TestMetricsStepMakesNoGarbage(t *testing.T) {
	m, err := OpenMetrics(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	n := testing.AllocsPerRun(10, func() {
		if err := m.Step(StepResult{Step: 1, Loss: 1.2345678}, 10, 2, 3); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("a line costs %v allocations", n)
	}
}

func TestPlotNeedsATrainingStep(t *testing.T) {
	if err := PlotLoss(t.TempDir(), "empty", nil); err == nil {
		t.Error("a plot of nothing is drawn")
	}
	one := 1.0
	dir := t.TempDir()
	if err := PlotLoss(dir, "one step", []Record{{Step: 1, Loss: &one, BPB: &one}}); err != nil {
		t.Error(err)
	}
	if stat, err := os.Stat(filepath.Join(dir, PlotFile)); err != nil || stat.Size() == 0 {
		t.Errorf("%v, %v", stat, err)
	}
}

func TestPlotRangeLeavesOutTheFirstFall(t *testing.T) {
	var records []Record
	for i := range 1000 {
		bpb := 1 + 3/float64(1+i)
		records = append(records, Record{Step: i + 1, Loss: &bpb, BPB: &bpb})
	}
	train, valid := curves(records)
	low, high := bounds(train, valid)
	if low > 1 || low < 0.9 || high < train[50].Y || high > 1.5 {
		t.Errorf("the range is %v to %v", low, high)
	}
}

func TestKeyedLines(t *testing.T) {
	var out bytes.Buffer
	r := newReporter(&out, false)
	for step := 1; step <= 50; step++ { // far less than a line's time
		r.Step(Event{Step: step, Steps: 50, Result: StepResult{Loss: 2, LR: 0.001}}, 1.25, 12345.6, 90*time.Second)
	}
	r.Note("valid %d", 7)
	r.Finish()
	want := "step=1/50 loss=2.0000 bpb=1.2500 lr=0.001 tok/s=12346 left=1m30s\n" +
		"step=50/50 loss=2.0000 bpb=1.2500 lr=0.001 tok/s=12346 left=1m30s\nvalid 7\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	quiet := newReporter(&out, true)
	quiet.Step(Event{}, 0, 0, 0)
	quiet.Note("x")
	quiet.Finish()
	if out.Len() > 0 {
		t.Errorf("quiet says %q", out.String())
	}
}

func TestBarIsPushedAsideByNotes(t *testing.T) {
	var out bytes.Buffer
	b := &bar{w: &out}
	b.Note("before the first step")
	b.Step(Event{Step: 1, Steps: 2, Result: StepResult{Loss: 2}}, 1.25, 1000, time.Minute)
	b.Note("a note")
	b.Step(Event{Step: 2, Steps: 2, Result: StepResult{Loss: 1.5}}, 1.125, 1000, 0)
	b.Finish()
	for _, want := range []string{"before the first step\n", "loss 2.000, 1.250 bits/byte, 1000 tok/s, 1m0s left", "a note\n",
		"loss 1.500, 1.125 bits/byte", "2/2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
}

func TestPaceIsTheMeanAtFirst(t *testing.T) {
	p := newPace(4)
	loss, speed, _ := p.add(Event{Step: 5, Steps: 10, Result: StepResult{Loss: 3, Elapsed: 2 * time.Second}}, 100)
	if loss < 2.999 || loss > 3.001 || speed < 49.9 || speed > 50.1 {
		t.Errorf("after one step: loss %v, %v tokens a second", loss, speed)
	}
	for step := 6; step <= 500; step++ {
		loss, speed, _ = p.add(Event{Step: step, Steps: 500, Result: StepResult{Loss: 1, Elapsed: time.Second}}, 100)
	}
	if loss < 0.999 || loss > 1.001 || speed < 99.9 || speed > 100.1 {
		t.Errorf("after many: loss %v, %v tokens a second", loss, speed)
	}
}

// In a short run, and at the start of a long one, the printed loss stays near each step's own while that falls; later it
// is smooth. So it is after a resume, whose first step is all that it knows.
func TestPrintedLossKeepsUpWithTheFall(t *testing.T) {
	p := newPace(0)
	for step := 1; step <= 400; step++ {
		own := 1 + 4*math.Exp(-float64(step)/15)
		jump := 0.1 * float64(step%2)
		loss, _, _ := p.add(Event{Step: step, Steps: 400, Result: StepResult{Loss: own + jump, Elapsed: time.Second}}, 100)
		if math.Abs(loss-own) > 0.2 {
			t.Errorf("step %d: %.4f is printed where the loss is %.4f", step, loss, own)
		}
		if step > 300 && math.Abs(loss-own-0.05) > 0.01 {
			t.Errorf("step %d: %.4f is not smooth", step, loss)
		}
	}
	resumed := newPace(399)
	if loss, _, _ := resumed.add(Event{Step: 400, Steps: 400, Result: StepResult{Loss: 2, Elapsed: time.Second}}, 100); loss != 2 {
		t.Errorf("%v after a resume", loss)
	}
}

func TestBudgetTable(t *testing.T) {
	cfg, err := configs.Load("builtin:combo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	printBudget((&keyedLines{w: &out}).Note, cfg, plan, 2)
	for _, want := range []string{"3,377,600", "12.00 MFLOP", "1,802,240 weights", "reads one row", "1,954 steps",
		"4 micro-batches x 2 sequences x 256 tokens"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 101 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
}
