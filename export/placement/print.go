package placement

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/export/image"
)

// WriteSummary prints the memories with their headroom, the estimate of speed with its shares, and the notes.
func (l *Layout) WriteSummary(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Placement of %s on %s (bytes)\n\n", l.Model, l.Target)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "memory\tusable\tbuffers\tweights\tfree\tread per token\t")
	for _, u := range l.Memories {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t\n", u.Name, digits.Comma(u.Usable), digits.Comma(u.Buffers), digits.Comma(u.Weights), digits.Comma(u.Free), digits.Comma(int64(math.Round(u.Read))))
	}
	if p := l.Partition; p != nil {
		fmt.Fprintf(tw, "flash partition\t%s\t-\t%s\t%s\t-\t\n", digits.Comma(p.Bytes), digits.Comma(p.Image), digits.Comma(p.Free))
	}
	tw.Flush()
	if m := l.MMU; m != nil {
		fmt.Fprintf(&b, "\nAddresses are mapped in %d pages of %s bytes:\n  %d for the program, %d for PSRAM, %d for the image; %d are free\n",
			m.Pages, digits.Comma(m.PageBytes), m.App, m.PSRAM, m.Image, m.Free)
	}
	fmt.Fprintf(&b, "\nEstimated by a model, not measured on a chip, for %s:\n", l.Assumed())
	l.Cost.Write(&b)
	for i, n := range l.Notes {
		if i == 0 {
			fmt.Fprintln(&b)
		}
		fmt.Fprintln(&b, Wrap("note: "+n, width))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Write prints the times, what is waited for, and the parts, largest first.
func (c *Cost) Write(b *strings.Builder) {
	fmt.Fprintf(b, "  %.2f ms at the start, %.2f in the middle, %.2f at the end of the context; %.1f tokens a second\n",
		c.StartMs, c.MiddleMs, c.EndMs, c.PerSec)
	fmt.Fprintf(b, "\nA token takes %.3f ms, the mean of the positions %d to %d: what it waits for, and its parts.\n"+
		"Reading and computing overlap, and the longer counts; but rows from flash are waited for.\n\n", c.MeanMs, c.From, c.To)
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, w := range c.Waits {
		fmt.Fprintf(tw, "%.3f\t%s\t  %s\n", w.Ms, c.share(w.Ms), w.For)
	}
	tw.Flush()
	fmt.Fprintln(b)
	tw = tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "ms\tshare\treading\tcomputing\tbytes\tbound by\t  part")
	parts := slices.Clone(c.Parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Ms, a.Ms) })
	for _, p := range parts {
		if p.Ms < 0.0005 {
			continue // would print as nothing
		}
		name := p.Name
		if p.Memory != "" {
			name += " from " + p.Memory
		}
		fmt.Fprintf(tw, "%.3f\t%s\t%s\t%s\t%s\t%s\t  %s\n", p.Ms, c.share(p.Ms), orDash(p.ReadMs), orDash(p.ComputeMs),
			digits.Comma(int64(math.Round(p.Bytes))), p.Bound(), name)
	}
	tw.Flush()
}

// share is a part of the mean, in percent.
func (c *Cost) share(ms float64) string { return fmt.Sprintf("%.1f %%", 100*ms/c.MeanMs) }

// Assumed says what is taken to be read of head and neurons.
func (l *Layout) Assumed() string { return l.Measured.HeadRead() + " and " + l.Measured.NeuronsRead() }

// HeadRead says what is taken to be read of the head. The receiver may be nil.
func (m *Measured) HeadRead() string {
	if m.head() == nil {
		return "the full head"
	}
	return digits.Comma(int64(math.Round(m.Head.Rows))) + " of the head's rows"
}

// NeuronsRead says what is taken to be read of the neurons. The receiver may be nil.
func (m *Measured) NeuronsRead() string {
	if m == nil || m.Neurons == nil {
		return "every neuron"
	}
	var rows int64
	for _, n := range m.Neurons {
		rows += n.Up
	}
	mean := float64(rows) / (float64(len(m.Neurons)) * float64(m.Tokens))
	return digits.Comma(int64(math.Round(mean))) + " open neurons a layer"
}

// Write prints the whole plan: the summary, and a line per tensor.
func (l *Layout) Write(w io.Writer) error {
	if err := l.WriteSummary(w); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nTensors: heat is how often a token reads a byte\n\n")
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "tier\tbits\tbytes\tread per token\theat\t tensor")
	for _, tier := range []image.Tier{image.SRAM, image.PSRAM, image.Flash} {
		for _, p := range l.Tensors {
			if p.Tier == tier {
				fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%.3g\t %s\n", p.Tier, p.Bits, digits.Comma(p.Bytes), digits.Comma(int64(math.Round(p.ReadBytes))), p.Heat(), p.Name)
			}
		}
	}
	tw.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

// width is what a line of text fits into.
const width = 100

// Wrap breaks a text between words; later lines are indented.
func Wrap(text string, width int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i > 0 && at+1+len(word) > width:
			b.WriteString("\n  ")
			at = 2
		case i > 0:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}

func orDash(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", ms)
}
