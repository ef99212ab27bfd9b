package train

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Reporter tells a person how training goes.
type Reporter interface {
	// Step is told of every step: its loss and speed are running means over about the last ten steps, left is what the
	// other steps will take.
	Step(e Event, bpb, tokensPerSecond float64, left time.Duration)
	Note(format string, args ...any) // a line of its own
	Finish()
}

// newReporter makes a progress bar on a terminal, keyed lines elsewhere, and nothing when quiet.
func newReporter(w io.Writer, quiet bool) Reporter {
	if quiet {
		return silence{}
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &bar{w: w}
	}
	return &keyedLines{w: w}
}

type silence struct{}

func (silence) Step(Event, float64, float64, time.Duration) {}
func (silence) Note(string, ...any)                         {}
func (silence) Finish()                                     {}

// lineEvery is the time between two lines about steps.
const lineEvery = 5 * time.Second

// keyedLines writes `step=100 loss=...` lines: one for the first step, one for the last, and one every few seconds.
type keyedLines struct {
	w    io.Writer
	last time.Time
}

func (k *keyedLines) Step(e Event, bpb, tokensPerSecond float64, left time.Duration) {
	if now := time.Now(); e.Last() || now.Sub(k.last) >= lineEvery {
		k.last = now
		fmt.Fprintf(k.w, "step=%d/%d loss=%.4f bpb=%.4f lr=%.3g tok/s=%.0f left=%s\n",
			e.Step, e.Steps, e.Result.Loss, bpb, e.Result.LR, tokensPerSecond, left.Round(time.Second))
	}
}

func (k *keyedLines) Note(format string, args ...any) { fmt.Fprintf(k.w, format+"\n", args...) }
func (k *keyedLines) Finish()                         {}

// barEvery is the time between two drawings of the bar.
const barEvery = 200 * time.Millisecond

// bar is a progress bar with the figures of the last step behind it.
type bar struct {
	w    io.Writer
	bar  *progressbar.ProgressBar
	last time.Time
}

func (b *bar) Step(e Event, bpb, tokensPerSecond float64, left time.Duration) {
	now := time.Now()
	if !e.Last() && now.Sub(b.last) < barEvery {
		return
	}
	b.last = now
	if b.bar == nil {
		b.bar = progressbar.NewOptions(e.Steps,
			progressbar.OptionSetWriter(b.w), progressbar.OptionSetWidth(20), progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
			progressbar.OptionUseANSICodes(false))
	}
	b.bar.Describe(fmt.Sprintf("loss %.3f, %.3f bits/byte, %.0f tok/s, %s left",
		e.Result.Loss, bpb, tokensPerSecond, left.Round(time.Second)))
	_ = b.bar.Set(e.Step)
}

func (b *bar) Note(format string, args ...any) {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
	fmt.Fprintf(b.w, format+"\n", args...)
	if b.bar != nil {
		_ = b.bar.RenderBlank()
	}
}

func (b *bar) Finish() {
	if b.bar != nil {
		_ = b.bar.Exit()
		fmt.Fprintln(b.w)
	}
}

// pace turns steps into the figures that a reporter shows. Loss and speed are running means, since single steps jump.
type pace struct {
	start         time.Time
	first         int // steps taken before this session
	loss, seconds runningMean
}

// smoothedSteps is about how many steps a running mean is over.
const smoothedSteps = 10

func newPace(step int) *pace { return &pace{start: time.Now(), first: step} }

// add takes a step in and returns the smoothed loss, tokens per second, and the time that the steps left will take at
// the mean speed so far, validations and the like included.
//
// The loss falls fastest at first, where a mean over ten steps lags far behind. So it is over a tenth of the steps of the
// run so far, until that is ten: a short run shows nearly each step's own.
func (p *pace) add(e Event, tokensPerStep int64) (loss, tokensPerSecond float64, left time.Duration) {
	loss = p.loss.add(e.Result.Loss, min(max(float64(e.Step)/10, 1), smoothedSteps))
	seconds := p.seconds.add(e.Result.Elapsed.Seconds(), smoothedSteps)
	done := e.Step - p.first
	left = time.Duration(float64(time.Since(p.start)) / float64(done) * float64(e.Steps-e.Step))
	return loss, float64(tokensPerStep) / seconds, left
}

// runningMean forgets values exponentially. It starts from nothing, which weight takes out again: the mean of the first
// value is that value.
type runningMean struct{ sum, weight float64 }

// add takes a value in and gives the mean over about so many.
func (m *runningMean) add(x, over float64) float64 {
	m.sum += (x - m.sum) / over
	m.weight += (1 - m.weight) / over
	return m.sum / m.weight
}
