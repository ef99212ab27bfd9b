package placement

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/chiplm/chiplm/export/image"
)

// WriteSummary prints the memories with their headroom and the estimate of speed.
func (l *Layout) WriteSummary(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Placement of %s on %s (bytes)\n\n", l.Model, l.Target)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "memory\tusable\tbuffers\tweights\tfree\tread per token\t")
	for _, u := range l.Memories {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t\n", u.Name, comma(u.Usable), comma(u.Buffers), comma(u.Weights), comma(u.Free), comma(int64(u.Read)))
	}
	if p := l.Partition; p != nil {
		fmt.Fprintf(tw, "flash partition\t%s\t-\t%s\t%s\t-\t\n", comma(p.Bytes), comma(p.Image), comma(p.Free))
	}
	if m := l.MMU; m != nil {
		fmt.Fprintf(tw, "pages of %s\t%d\t%d\t%d\t%d\t-\t\n", comma(m.PageBytes), m.Pages, m.App+m.PSRAM, m.Image, m.Free)
	}
	tw.Flush()
	if l.MMU != nil {
		fmt.Fprintf(&b, "\nPages under buffers: app %d, PSRAM %d; under weights: the image.\n", l.MMU.App, l.MMU.PSRAM)
	}
	for _, n := range l.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	c := l.Cost
	fmt.Fprintf(&b, "\nEstimated by a model, not measured (full head, every neuron read):\n")
	fmt.Fprintf(&b, "  %.2f ms at the start, %.2f in the middle, %.2f at the end of the context; %.1f tokens a second\n",
		c.StartMs, c.MiddleMs, c.EndMs, c.PerSec)
	_, err := io.WriteString(w, b.String())
	return err
}

// Write prints the whole plan: summary, shares of the time, and a line per tensor.
func (l *Layout) Write(w io.Writer) error {
	if err := l.WriteSummary(w); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nA token in the middle of the context, in ms:\n\n")
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range l.Cost.Parts {
		fmt.Fprintf(tw, "  %s\t%7.3f\n", p.Name, p.Ms)
	}
	tw.Flush()
	fmt.Fprintf(&b, "\nTensors: heat is how often a token reads a byte\n\n")
	tw = tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "tier\tbits\tbytes\tread per token\theat\t tensor")
	for _, tier := range []image.Tier{image.SRAM, image.PSRAM, image.Flash} {
		for _, p := range l.Tensors {
			if p.Tier == tier {
				fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%.3g\t %s\n", p.Tier, p.Bits, comma(p.Bytes), comma(int64(p.ReadBytes)), p.Heat(), p.Name)
			}
		}
	}
	tw.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

// comma writes a number with separators between thousands.
func comma(n int64) string {
	s := strconv.FormatInt(n, 10)
	from := 0
	if n < 0 {
		from = 1
	}
	for i := len(s) - 3; i > from; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
