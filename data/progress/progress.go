// Package progress shows how far a long piece of work is: as a bar on a terminal, as a plain line now and then
// elsewhere.
package progress

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// aside is the room that percentage, a bar that can be told as one, rate and times need beside the label.
const aside = 48

// Bar shows progress over a number of bytes, steps or tokens. It is not safe for concurrent use.
type Bar struct {
	w     io.Writer
	label string
	unit  string    // of what is counted; "" for bytes
	next  time.Time // of the next plain line
	now   func() time.Time

	bar      *progressbar.ProgressBar // nil off a terminal
	terminal *os.File
}

// every is the time between two plain lines.
const every = 10 * time.Second

// NewBytes shows progress over bytes on w, which is standard error as a rule.
func NewBytes(w io.Writer, label string) *Bar { return newBar(w, label, "") }

// NewSteps shows progress over steps.
func NewSteps(w io.Writer, label string) *Bar { return newBar(w, label, "steps") }

// NewTokens shows progress over tokens.
func NewTokens(w io.Writer, label string) *Bar { return newBar(w, label, "tokens") }

func newBar(w io.Writer, label, unit string) *Bar {
	b := &Bar{w: w, label: label, unit: unit, now: time.Now}
	b.next = b.now().Add(every)
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		b.terminal = f
		b.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(cut(label, max(b.columns()-aside, 8))),
			progressbar.OptionShowBytes(unit == ""), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	}
	return b
}

// Update tells how much is done of the total; a total below 1 is unknown.
func (b *Bar) Update(done, total int64) {
	if b.bar != nil {
		if total > 0 && b.bar.GetMax64() != total {
			b.bar.ChangeMax64(total)
		}
		_ = b.bar.Set64(done)
		return
	}
	if b.now().Before(b.next) {
		return
	}
	b.next = b.now().Add(every)
	if total > 0 {
		fmt.Fprintf(b.w, "%s: %s of %s (%d %%)\n", b.label, b.number(done), b.amount(total), 100*done/total)
	} else {
		fmt.Fprintf(b.w, "%s: %s\n", b.label, b.amount(done))
	}
}

// number is n in the unit that amount names.
func (b *Bar) number(n int64) string {
	if b.unit != "" {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%.1f", float64(n)/1e6)
}

func (b *Bar) amount(n int64) string {
	if b.unit != "" {
		return b.number(n) + " " + b.unit
	}
	return b.number(n) + " MB"
}

// Note prints a line without disturbing the bar. On a terminal it is cut to the width of that.
func (b *Bar) Note(text string) {
	text = b.label + ": " + text
	if b.bar != nil {
		_ = b.bar.Clear()
		text = cut(text, b.columns()-1)
	}
	fmt.Fprintln(b.w, text)
}

// columns is the width of the terminal.
func (b *Bar) columns() int {
	if width, _, err := term.GetSize(int(b.terminal.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

// cut makes text one line of at most width runes.
func cut(text string, width int) string {
	runes := []rune(strings.ReplaceAll(text, "\n", " "))
	if width = max(width, 1); len(runes) <= width {
		return string(runes)
	}
	return string(runes[:width-1]) + "…"
}

// Done takes the bar away.
func (b *Bar) Done() {
	if b.bar != nil {
		_ = b.bar.Clear()
		_ = b.bar.Exit()
	}
}
