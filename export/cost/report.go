package cost

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/export/placement"
)

// Report is what `chiplm cost` says of a model.
type Report struct {
	Model    string              `json:"model"`
	Source   string              `json:"source"`
	Target   string              `json:"target"`
	Title    string              `json:"title"`
	Reads    string              `json:"reads"` // what head and neurons are taken to read, and whether it was measured
	Notes    []string            `json:"notes,omitempty"`
	Measured *placement.Measured `json:"measured,omitempty"`
	Bytes    float64             `json:"bytes_read_per_token"` // of weights
	Memories []placement.Use     `json:"memories"`
	Cost     placement.Cost      `json:"cost"`
	WhatIfs  []WhatIf            `json:"what_if"` // all that were tried; the table leaves some out
}

const (
	columns = 100   // of a line
	least   = 0.005 // of a token, that a change must gain to be in the table
)

// Report plans and estimates a model over a range of positions, both ends included, and tries what would help. The error
// wraps [placement.ErrFit] for a model that the chip cannot hold.
func (s *Subject) Report(from, to int) (*Report, error) {
	l, err := s.plan(from, to)
	if errors.Is(err, placement.ErrFit) && s.fitsWithHalfScales(from, to) {
		err = fmt.Errorf("%w, or store the scales in 16 bits, with which it fits (--set quant.weights.scale=f16)", err)
	}
	if err != nil {
		return nil, err
	}
	r := &Report{Model: s.Config.Name, Source: s.Source, Target: s.Target.Name, Title: s.Target.Title, Reads: s.describe(l), Notes: s.notes(),
		Measured: l.Measured, Bytes: l.ReadBytes, Memories: l.Memories, Cost: l.Cost}
	r.WhatIfs, err = s.WhatIfs(l)
	return r, err
}

// fitsWithHalfScales says whether 16-bit scales alone make a configuration fit.
func (s *Subject) fitsWithHalfScales(from, to int) bool {
	c := *s.Config
	if s.Measured != nil || c.Quant.Weights.Scale != configs.ScaleF32 {
		return false
	}
	c.Quant.Weights.Scale = configs.ScaleF16
	changed := *s
	changed.Config = &c
	_, err := changed.plan(from, to)
	return err == nil
}

// Positions reads the range of positions asked for.
func positionsOf(s string, c *configs.Config) (from, to int, err error) {
	return placement.Positions(s, c.ContextLength)
}

func (r *Report) print(w io.Writer) error {
	var b strings.Builder
	c := &r.Cost
	fmt.Fprintf(&b, "%s on %s\n", r.Model, r.Title)
	fmt.Fprintf(&b, "an estimate, no measurement, with the kernels of the profile %q\n", c.Profile)
	fmt.Fprintln(&b, placement.Wrap(r.Reads, columns))
	for _, n := range r.Notes {
		fmt.Fprintln(&b, placement.Wrap("note: "+n, columns))
	}
	var where []string
	for _, m := range r.Memories {
		where = append(where, fmt.Sprintf("%s of %s", digits.Comma(int64(math.Round(m.Read))), m.Name))
	}
	fmt.Fprintf(&b, "%s bytes of weights a token: %s\n\n", digits.Comma(int64(math.Round(r.Bytes))), strings.Join(where, ", "))
	c.Write(&b)
	r.printWhatIfs(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// printWhatIfs prints the changes that gain something, and names the others. Of changes that come to the same, such as a group
// of 128 and a scale a row where rows have 128 columns, the first that was tried is enough.
func (r *Report) printWhatIfs(b *strings.Builder) {
	var gains []WhatIf
	var others []string
	for _, x := range r.WhatIfs {
		same := slices.ContainsFunc(gains, func(y WhatIf) bool { return y.Ms == x.Ms && y.Quality == x.Quality })
		if x.GainedMs < least*r.Cost.MeanMs || same {
			others = append(others, x.Change)
		} else {
			gains = append(gains, x)
		}
	}
	if len(gains) > 0 {
		fmt.Fprint(b, "\nWhat would help, by this model (* the model must be trained or quantised anew):\n\n")
		tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(tw, "ms gained\tms\ttokens/s\t   change")
		for _, x := range gains {
			star := ' '
			if x.Quality {
				star = '*'
			}
			fmt.Fprintf(tw, "%.3f\t%.3f\t%.1f\t %c %s\n", x.GainedMs, x.Ms, 1e3/x.Ms, star, x.Change)
		}
		tw.Flush()
	}
	if len(others) > 0 {
		text := fmt.Sprintf("Tried too, but gains less than %.1f %%, or the same as one above: ", 100*least)
		fmt.Fprintf(b, "\n%s\n", placement.Wrap(text+strings.Join(others, "; ")+".", columns))
	}
}

// printPublished prints published figures beside the model's.
func printPublished(w io.Writer, chip string, list []Published) error {
	var b strings.Builder
	calibrates := 0
	for _, p := range list {
		if p.Use == Calibrates {
			calibrates++
		}
	}
	fmt.Fprintf(&b, "Published figures of others, and the model's with the profile %q on\n%s.\n"+
		"%d of %d figures gave %d parameters their values; the others are predicted, but not blindly:\nthe form of the model was chosen with them in sight (docs/cost.md).\n\n", PublishedProfile, chip, calibrates, len(list), parameters)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "figure\tpositions\tunit\tpublished\tmodel\toff by\tuse")
	for _, p := range list {
		use := string(p.Use)
		if p.Use == Predicted && p.Off() {
			use = "missed"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%9.2f\t%.2f\t%+.1f %%\t%s\n", p.What, p.Positions, p.Unit, p.Published, p.Model, p.Percent, use)
	}
	tw.Flush()
	for _, p := range list {
		if p.Note != "" {
			fmt.Fprintf(&b, "%s: %s\n", p.What, p.Note)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
