package eval

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"

	"github.com/chiplm/chiplm/data/digits"
)

// listedDisagreements is how many disagreements the table lists; JSON has all.
const listedDisagreements = 10

// tokenColumns is the most that the table shows of a token, quotation marks included.
const tokenColumns = 18

// percent writes a share, and 100 % only for all.
func percent(share float64) string {
	p := math.Floor(share*1e6) / 1e4
	return strconv.FormatFloat(p, 'f', -1, 64) + " %"
}

// of writes a part of a whole.
func of(part, whole int64) string {
	return fmt.Sprintf("%s of %s (%s)", digits.Comma(part), digits.Comma(whole), percent(float64(part)/float64(max(whole, 1))))
}

// write prints the verification within 100 columns, but for paths.
func (v *Verification) write(w io.Writer) error {
	image := "packed from it"
	if v.Image != "" {
		image = v.Image
	}
	fmt.Fprintf(w, "model    %s: %s\n", v.Model, v.Path)
	fmt.Fprintf(w, "image    %s, sha256 %.12s\n", image, v.ImageSHA256)
	fmt.Fprintf(w, "stories  %s: the first %s, sha256 %.12s\n", v.Stories.Path, digits.Comma(v.Stories.Count), v.Stories.SHA256)
	fmt.Fprintf(w, "tokens   %s in %s windows\n\n", digits.Comma(v.Tokens), digits.Comma(v.Windows))

	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "nats per token: engine, graph, difference\t%.6f  %.6f  %.3g\n", v.EngineNats, v.GraphNats, v.LossDifference)
	fmt.Fprintf(t, "the same token chosen\t%s\n", of(v.Tokens-int64(len(v.Disagreements)), v.Tokens))
	fmt.Fprintf(t, "others; near-ties among them\t%s; %s\n", digits.Comma(len(v.Disagreements)), digits.Comma(v.NearTies))
	fmt.Fprintf(t, "positions with all logits equal to the bit\t%s\n", of(v.EqualPositions, v.Tokens))
	fmt.Fprintf(t, "largest difference of a logit\t%.3g\n", v.LargestLogit)
	fmt.Fprintf(t, "digest: engine, graph\t%s  %s\n", v.EngineDigest, v.GraphDigest)
	if err := t.Flush(); err != nil {
		return err
	}

	s := &v.Steps
	fmt.Fprintf(w, "\nStep by step on %s windows, %s tokens; values equal to the bit:\n", digits.Comma(s.Windows), digits.Comma(s.Positions))
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "linear layers\t%s\n", of(s.LinearEqual, s.LinearValues))
	fmt.Fprintf(t, "what is between them\t%s\n", of(s.OtherEqual, s.OtherValues))
	if err := t.Flush(); err != nil {
		return err
	}
	if d := s.First; d != nil {
		fmt.Fprintf(w, "The first difference is in %s\n  story %d, token %d, value %d: %g in the engine, %g in the graph\n",
			d, d.Story, d.Token, d.Index, d.Engine, d.Graph)
	}
	if err := v.writeDisagreements(w); err != nil {
		return err
	}
	return v.writeTargets(w)
}

func (v *Verification) writeDisagreements(w io.Writer) error {
	if len(v.Disagreements) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nOther tokens chosen (gaps in nats; a near-tie has none above %g):\n", NearTie)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "story\ttoken\tengine\tgraph\tengine's gap\tgraph's gap\t")
	for _, d := range v.Disagreements[:min(len(v.Disagreements), listedDisagreements)] {
		tie := ""
		if d.NearTie {
			tie = "near-tie"
		}
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%.3g\t%.3g\t%s\n", d.Story, d.Token, d.Engine.quoted(), d.Graph.quoted(),
			d.EngineGap, d.GraphGap, tie)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := len(v.Disagreements) - listedDisagreements; more > 0 {
		fmt.Fprintf(w, "and %s more: see --json\n", digits.Comma(more))
	}
	return nil
}

// quoted is a token for the table: its id and its text, cut to tokenColumns.
func (t TokenText) quoted() string {
	text := []rune(strconv.Quote(t.Text))
	if len(text) > tokenColumns {
		text = append(text[:tokenColumns-1], '…')
	}
	return fmt.Sprintf("%d %s", t.ID, string(text))
}

func (v *Verification) writeTargets(w io.Writer) error {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "target\tfound\twanted\t")
	for _, target := range v.Targets {
		met := "met"
		if !target.Met {
			met = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", target.Name, target.Found, target.Want, met)
	}
	return t.Flush()
}
