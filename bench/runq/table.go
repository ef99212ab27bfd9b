package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/chiplm/chiplm/data/digits"
)

func (e entrant) String() string {
	switch {
	case e.Program != chiplmName:
		return e.Program
	case e.Model != "":
		return fmt.Sprintf("%s, %s as trained", e.Program, e.Model)
	}
	return fmt.Sprintf("%s, %d bits", e.Program, e.Bits)
}

// cut shortens a text to a column.
func cut(s string, columns int) string {
	r := []rune(s)
	if len(r) <= columns {
		return s
	}
	return string(r[:columns-3]) + "..."
}

// write prints the result for people, within 100 columns but for what the user named.
func (r *Result) write(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "machine:  %s, one thread\n", r.CPU)
	for _, o := range r.Opponents {
		fmt.Fprintf(&b, "opponent: %s", o.Name)
		if o.Note != "" {
			fmt.Fprintf(&b, ": %s", o.Note)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "runs:     %d in turn of %g s or more; medians, and the fastest round\n", r.Rounds, r.Seconds)
	rate := func(x float64) string { return digits.Comma(int64(x + 0.5)) }
	for _, g := range r.Groups {
		s := g.Shape
		fmt.Fprintf(&b, "\n%s: width %d, feed-forward %d, %d layers, %d heads, vocabulary %d, %d positions, groups of %d\n", s.Name, s.DModel,
			s.DFF, s.Layers, s.Heads, s.Vocab, s.Context, s.Group)
		fmt.Fprintf(&b, "the same network: of %d tokens that runq wrote, %d are the likeliest for chiplm at 8 bits\n\n", s.Context, g.Agreement)
		fmt.Fprintf(&b, "%-28s%5s%11s%10s%17s%8s%7s%14s\n", "program", "bits", "MAC/token", "tokens/s", "lowest-highest", "ns/MAC", "ratio", "fastest round")
		for _, row := range g.Rows {
			fmt.Fprintf(&b, "%-28s%5d%9.3f M%10s%17s%8.3f%7.2f%8.3f%6.2f\n", cut(row.entrant.String(), 27), row.Bits, float64(row.MACs)/1e6,
				rate(row.Median), rate(row.Lowest)+"-"+rate(row.Highest), row.PerMAC, row.Ratio, row.Best, row.RatioFastest)
		}
	}
	fmt.Fprint(&b, "\nA ratio is the time of the fastest runq for a multiply-accumulate over that of the row: above 1,\n",
		"the row is faster. MAC/token: the weights that enter a token's products, and for attention layers x\n",
		"width x (positions + 2), the mean over the positions that are timed (the second to the last).\n\n")
	for _, g := range r.Groups {
		for _, row := range g.Rows {
			if row.Program == chiplmName {
				fmt.Fprintf(&b, "%s: %s is %.2f times as fast per multiply-accumulate as the fastest runq (by fastest rounds %.2f)\n", g.Shape.Name,
					row.entrant, row.Ratio, row.RatioFastest)
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
