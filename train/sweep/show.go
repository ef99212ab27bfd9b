package sweep

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/chiplm/chiplm/data/digits"
)

// display tells a person how a sweep goes. Its methods may be called by several goroutines.
type display interface {
	note(format string, args ...any)
	start(jobs []*job)
	changed(j *job)
	finish()
}

// silent is a display that shows nothing.
type silent struct{}

func (silent) note(string, ...any) {}
func (silent) start([]*job)        {}
func (silent) changed(*job)        {}
func (silent) finish()             {}

// newDisplay makes a table that is drawn again and again on a terminal, and lines elsewhere.
func newDisplay(w io.Writer) display {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return newTable(w, func() (int, int) {
			width, height, err := term.GetSize(int(f.Fd()))
			if err != nil || width <= 0 || height <= 0 {
				return 80, 24
			}
			return width, height
		})
	}
	return &lines{w: w, every: 30 * time.Second}
}

// ticker calls a function now and then until it is stopped.
type ticker struct {
	stop chan struct{}
	gone sync.WaitGroup
}

func tick(every time.Duration, f func()) *ticker {
	t := &ticker{stop: make(chan struct{})}
	t.gone.Go(func() {
		clock := time.NewTicker(every)
		defer clock.Stop()
		for {
			select {
			case <-clock.C:
				f()
			case <-t.stop:
				return
			}
		}
	})
	return t
}

func (t *ticker) end() {
	close(t.stop)
	t.gone.Wait()
}

// estimate works out how long a whole sweep will take yet, by the arithmetic of training done so far.
type estimate struct {
	began time.Time
	jobs  []*job
}

// left is the time of the training that is left, at the pace of this sweep so far; 0: not known yet.
func (e *estimate) left() time.Duration {
	did, rest := 0.0, 0.0
	for _, j := range e.jobs {
		s := j.status()
		perStep := float64(j.cfg.Budget().TrainFLOP) * float64(j.plan.TokensPerStep)
		did += perStep * float64(max(s.Step-j.steps, 0))
		if s.State != done && s.State != failed && s.State != broken {
			rest += perStep * float64(s.Steps-s.Step)
		}
	}
	if did == 0 {
		return 0
	}
	return time.Duration(float64(time.Since(e.began)) / did * rest)
}

// round is a time for people.
func round(d time.Duration) string {
	if d >= time.Hour {
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}

// describe says how a run stands, in one line.
func describe(s Status) string {
	switch s.State {
	case training:
		if s.speed == 0 {
			return fmt.Sprintf("training from step %s of %s, workers: %d", digits.Comma(s.Step), digits.Comma(s.Steps), s.workers)
		}
		return fmt.Sprintf("step %s of %s, loss %.4f, %s tokens/s, %s left", digits.Comma(s.Step), digits.Comma(s.Steps), s.loss,
			digits.Comma(int64(s.speed)), round(s.left))
	case scoring:
		return "trained; scoring"
	case done:
		return fmt.Sprintf("done: %.4f bits per byte", s.BitsPerByte)
	case failed:
		return "failed: " + s.Why
	case broken:
		return "ended by an error: " + s.Why
	case half:
		return fmt.Sprintf("begun, at step %s of %s", digits.Comma(s.Step), digits.Comma(s.Steps))
	case trained:
		return "trained, not scored"
	}
	return "waiting"
}

// lines writes a line for each change, and one for each run in training now and then.
type lines struct {
	mu    sync.Mutex
	w     io.Writer
	every time.Duration
	estimate
	ticker *ticker
}

func (l *lines) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format+"\n", args...)
}

func (l *lines) start(jobs []*job) {
	l.estimate = estimate{time.Now(), jobs}
	ready, left := 0, 0
	for _, j := range jobs {
		if j.settled() {
			ready++
		} else {
			left++
		}
	}
	l.note("runs: %d done, %d left", ready, left)
	l.ticker = tick(l.every, l.all)
}

func (l *lines) all() {
	for _, j := range l.jobs {
		if s := j.status(); s.State == training && s.speed > 0 {
			l.note("%s: %s", j.name, describe(s))
		}
	}
	if left := l.left(); left > 0 {
		l.note("about %s left for all", round(left))
	}
}

func (l *lines) changed(j *job) {
	s := j.status()
	s.speed = 0
	l.note("%s: %s", j.name, describe(s))
}

func (l *lines) finish() { l.ticker.end() }

// table draws all runs over and over.
type table struct {
	mu   sync.Mutex
	w    io.Writer
	size func() (width, height int)
	estimate
	ticker *ticker
	drawn  int // lines on the screen
}

func newTable(w io.Writer, size func() (int, int)) *table { return &table{w: w, size: size} }

func (t *table) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.erase()
	fmt.Fprintf(t.w, format+"\n", args...)
}

func (t *table) start(jobs []*job) {
	t.estimate = estimate{time.Now(), jobs}
	t.ticker = tick(500*time.Millisecond, t.draw)
	t.draw()
}

func (t *table) changed(*job) { t.draw() }

func (t *table) finish() {
	t.ticker.end()
	t.draw()
}

// erase takes the table off the screen.
func (t *table) erase() {
	if t.drawn > 0 {
		fmt.Fprintf(t.w, "\x1b[%dA\x1b[J", t.drawn)
		t.drawn = 0
	}
}

// draw draws all runs where they fit, else those that are under way and how many others there are.
func (t *table) draw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	width, height := t.size()
	var all []Status
	longest, ready := 3, 0
	for _, j := range t.jobs {
		s := j.status()
		all = append(all, s)
		longest = max(longest, len(j.name))
		if s.State == done || s.State == failed || s.State == broken {
			ready++
		}
	}
	longest = min(longest, width/3)
	var b strings.Builder
	n := 0
	row := func(text string) {
		if r := []rune(text); len(r) >= width {
			text = string(r[:max(width-2, 0)]) + "…"
		}
		b.WriteString(text + "\n")
		n++
	}
	total := fmt.Sprintf("%d of %d runs", ready, len(all))
	if left := t.left(); left > 0 {
		total += fmt.Sprintf(", about %s left", round(left))
	}
	for i, s := range all {
		if len(all)+2 > height && s.State != training && s.State != scoring || n+2 > height {
			continue
		}
		row(fmt.Sprintf("%-*.*s  %s", longest, longest, t.jobs[i].name, strings.ReplaceAll(describe(s), "\n", " ")))
	}
	row(total)
	t.erase()
	t.drawn = n
	_, _ = io.WriteString(t.w, b.String())
}
