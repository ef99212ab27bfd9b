// Package progress shows how far a long piece of work is: as a bar on a terminal, as a plain line now and then
// elsewhere.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// aside is the room that percentage, a bar that can be told as one, rate and times need beside the label.
const aside = 48

// Bytes shows progress over a number of bytes. It is not safe for concurrent use.
type Bytes struct {
	w     io.Writer
	label string
	next  time.Time // of the next plain line
	now   func() time.Time

	bar      *progressbar.ProgressBar // nil off a terminal
	terminal *os.File
}

// every is the time between two plain lines.
const every = 10 * time.Second

// NewBytes shows progress on w, which is standard error as a rule.
func NewBytes(w io.Writer, label string) *Bytes {
	b := &Bytes{w: w, label: label, now: time.Now}
	b.next = b.now().Add(every)
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		b.terminal = f
		b.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(cut(label, max(b.columns()-aside, 8))),
			progressbar.OptionShowBytes(true), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	}
	return b
}

// Update tells how much is done of the total; a total below 1 is unknown.
func (b *Bytes) Update(done, total int64) {
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
		fmt.Fprintf(b.w, "%s: %.1f of %.1f MB (%d %%)\n", b.label, float64(done)/1e6, float64(total)/1e6, 100*done/total)
	} else {
		fmt.Fprintf(b.w, "%s: %.1f MB\n", b.label, float64(done)/1e6)
	}
}

// Note prints a line without disturbing the bar. On a terminal it is cut to the width of that.
func (b *Bytes) Note(text string) {
	text = b.label + ": " + text
	if b.bar != nil {
		_ = b.bar.Clear()
		text = cut(text, b.columns()-1)
	}
	fmt.Fprintln(b.w, text)
}

// columns is the width of the terminal.
func (b *Bytes) columns() int {
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
func (b *Bytes) Done() {
	if b.bar != nil {
		_ = b.bar.Clear()
		_ = b.bar.Exit()
	}
}
