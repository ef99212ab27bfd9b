package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/chiplm/chiplm/data/digits"
)

func (e entrant) String() string {
	if e.Program == chiplmName {
		return e.Program
	}
	return fmt.Sprintf("%s %s, %s", e.Program, e.Mode, e.Variant)
}

// String is empty, or begins with a comma.
func (s setting) String() string {
	text := ""
	if s.MicroBatch > 0 {
		text = fmt.Sprintf(", %d sequences", s.MicroBatch)
	}
	if s.Wait != "" {
		text += ", OpenMP " + s.Wait
	}
	return text
}

// write prints the result for people, within 100 columns.
func (r *Result) write(w io.Writer) error {
	var b bytes.Buffer
	rate := func(x float64) string { return digits.Comma(int64(x + 0.5)) }
	fmt.Fprintf(&b, "model:   %s, %s tokens a step, float32\n", r.Config, digits.Comma(r.TokensPerStep))
	fmt.Fprintf(&b, "machine: %s\npaths:   chiplm on %s", r.CPU, r.Path)
	if r.Torch != "" {
		fmt.Fprintf(&b, ", PyTorch %s on %s", r.Torch, r.Capability)
	}
	fmt.Fprintf(&b, "\nruns:    %d in turn of %d steps; medians, and the fastest step of all\n\n", r.Rounds, r.Steps)
	fmt.Fprintf(&b, "%7s  %-26s%10s  %-7s%9s%16s%7s%14s\n", "threads", "program", "sequences", "OpenMP", "tokens/s", "lowest-highest",
		"ratio", "fastest step")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "%7d  %-26s", row.Threads, row.entrant)
		if row.Failure != "" {
			fmt.Fprint(&b, "    failed, see below\n")
			continue
		}
		sequences := ""
		if row.MicroBatch > 0 {
			sequences = fmt.Sprint(row.MicroBatch)
		}
		fmt.Fprintf(&b, "%10s  %-7s%9s%16s%7.2f%9s%5.2f\n", sequences, row.Wait, rate(row.Median),
			rate(row.Lowest)+"-"+rate(row.Highest), row.Ratio, rate(row.Fastest), row.Best)
	}
	fmt.Fprint(&b, "\nA ratio is chiplm's speed over that of the row: above 1, chiplm is faster.\n")
	for _, h := range r.Headlines {
		fmt.Fprintf(&b, "threads %d: chiplm is %.2f times as fast as PyTorch %s (%s; by fastest steps %.2f)\n", h.Threads, h.Ratio,
			h.Mode, h.Variant, h.Best)
	}
	for _, row := range r.Rows {
		if row.Failure != "" {
			fmt.Fprintf(&b, "\n%s, threads %d, failed:\n%s\n", row.entrant, row.Threads, row.Failure)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
