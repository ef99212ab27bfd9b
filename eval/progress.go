package eval

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// plainEvery is the pause between progress lines where the output is no terminal.
const plainEvery = 15 * time.Second

// progressTo shows how far a stage over total bytes of stories is: a bar with the time left on a terminal, a plain
// line now and then elsewhere, nothing at all on a nil writer.
func progressTo(w io.Writer, total int64) func(stage string) (step func(bytes int), done func()) {
	return func(stage string) (func(int), func()) {
		if w == nil {
			return func(int) {}, func() {}
		}
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			bar := progressbar.NewOptions64(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(stage),
				progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(),
				progressbar.OptionThrottle(100*time.Millisecond))
			return func(n int) { _ = bar.Add(n) }, func() { _ = bar.Finish() }
		}
		start := time.Now()
		told := start
		var seen int64
		return func(n int) {
			seen += int64(n)
			if now := time.Now(); now.Sub(told) >= plainEvery && seen < total {
				told = now
				left := time.Duration(float64(now.Sub(start)) * float64(total-seen) / float64(seen))
				fmt.Fprintf(w, "stage=%q bytes=%d total=%d left=%s\n", stage, seen, total, left.Round(time.Second))
			}
		}, func() {}
	}
}
