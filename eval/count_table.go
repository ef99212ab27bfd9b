package eval

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/chiplm/chiplm/data/digits"
)

// write prints a count as tables of at most 100 columns.
func (c *Count) write(w io.Writer) error {
	var b bytes.Buffer
	run := c.Conditions
	fmt.Fprintf(&b, "Bytes read, counted by the engine and predicted by the planner from the neurons that spoke\n\n")
	fmt.Fprintf(&b, "%s tokens fed in %s passes through the weights; the head was read %s times", digits.Comma(run.Positions),
		digits.Comma(run.Passes), digits.Comma(run.Heads))
	if n := run.Search.Searches; n > 0 {
		fmt.Fprintf(&b, ",\n%s of them in part: %s rows each", digits.Comma(n), digits.Comma((run.Search.Rows+n/2)/n))
	}
	fmt.Fprint(&b, "\n\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "counted/token\tpredicted/token\tdifference\tof dense\ttier\t  kind of tensor")
	row := func(r CountRow, name string) {
		share := "-"
		if r.Dense > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(r.Counted)/float64(r.Dense))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t  %s\n", perToken(r.PerToken), perToken(r.PredictedPerToken), digits.Comma(r.Difference), share, r.Tier, name)
	}
	for _, r := range c.Rows {
		row(r, r.Kind)
	}
	for _, r := range c.Tiers {
		row(r, "all of "+r.Tier)
	}
	row(c.Total, "all")
	t.Flush()
	fmt.Fprintf(&b, "\nDifference: over the whole run, in which %s bytes were counted.\n", digits.Comma(c.Total.Counted))
	fmt.Fprint(&b, "Of dense: compared with the same passes reading every neuron.\n")
	if c.OneByOne != c.Total.Dense {
		fmt.Fprintf(&b, "The same tokens one by one, with every neuron and the full head: %s bytes a token.\n",
			perToken(float64(c.OneByOne)/float64(max(run.Positions, 1))))
	}
	if len(c.Layers) > 0 {
		fmt.Fprintf(&b, "\nNeurons of the feed-forward: silent behind their gate, unused once quantised to 8 bits, and read\n\n")
		t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "layer\tsilent\tunused\trows of up\tcolumns of down\tbytes/token\tof dense\t")
		for l, x := range c.Layers {
			fmt.Fprintf(t, "%d\t%.1f %%\t%.1f %%\t%.1f %%\t%.1f %%\t%s\t%.1f %%\t\n", l, 100*x.Silent, 100*x.Unused, 100*x.UpRead, 100*x.DownRead,
				perToken(float64(x.Bytes)/float64(max(run.Positions, 1))), 100*float64(x.Bytes)/float64(max(x.Dense, 1)))
		}
		t.Flush()
	}
	_, err := w.Write(b.Bytes())
	return err
}

// perToken prints bytes a token, which need not be whole.
func perToken(v float64) string { return digits.Comma(int64(v + 0.5)) }
