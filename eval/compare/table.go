package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/data/digits"
)

// table is a grid of cells; the first column holds names, and is aligned left, as is the last where Words is set.
type table struct {
	Title   string
	Headers []string
	Rows    [][]string
	Words   bool   // the last column is text
	Note    string // below the rows; may be empty
}

// tables are those of a report, the same in every form.
func (r *Report) tables() []table {
	list := []table{r.quality(), r.costs()}
	if v := r.verdicts(); len(v.Rows) > 0 {
		list = append(list, v)
	}
	if len(r.Front) > 0 {
		list = append(list, r.fronts())
	}
	return list
}

// figure prints a value to so many digits after the point, or a dash where there is none.
func figure(v float64, decimals int) string {
	switch {
	case v == 0:
		return "-"
	case v >= 1e6:
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.*f", decimals, v)
}

func (s Summary) spread() string {
	if s.Spread == nil {
		return "-"
	}
	return score(*s.Spread)
}

// score prints a score or a spread, which may be 0.
func score(v float64) string {
	if v == 0 {
		return "0.0000"
	}
	return figure(v, 4)
}

func (r *Report) quality() table {
	t := table{Title: "Quality", Headers: []string{"arm", "runs", "bits/byte", "spread", "difference", "nats/token", "spread", "train loss"}}
	for _, a := range r.Arms {
		diff := "-"
		switch {
		case a.Name == r.Baseline:
			diff = "baseline"
		case a.Difference != nil:
			diff = a.Difference.BitsPerByte.String()
		}
		t.Rows = append(t.Rows, []string{a.Name, fmt.Sprint(len(a.Seeds)), score(a.BitsPerByte.Mean), a.BitsPerByte.spread(), diff,
			figure(a.NatsPerToken.Mean, 4), a.NatsPerToken.spread(), figure(a.TrainingLoss.Mean, 4)})
	}
	return t
}

// String tells the estimate to four digits.
func (e Estimate) String() string {
	sign, half := "+", "?"
	if e.Value < 0 {
		sign = "-"
	}
	if e.HalfWidth != nil {
		half = score(*e.HalfWidth)
	}
	return sign + score(math.Abs(e.Value)) + " +- " + half
}

func (r *Report) costs() table {
	t := table{Title: "Cost", Headers: []string{"arm", "parameters", "image", "weights", "read/token", "read/byte", "tokens/s", "text B/s", "by"}}
	for _, a := range r.Arms {
		by := a.ScoredBy
		if by == "" {
			by = "-"
		}
		t.Rows = append(t.Rows, []string{a.Name, digits.Comma(a.Parameters), amount(float64(a.ImageBytes)), amount(a.DensePerToken), amount(a.ReadPerToken), amount(a.ReadPerByte),
			figure(a.TokensPerSecond, 1), figure(a.TextPerSecond, 1), by})
	}
	return t
}

// amount tells bytes.
func amount(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v < 1e5:
		return fmt.Sprintf("%.2f kB", v/1e3)
	case v < 1e6:
		return fmt.Sprintf("%.1f kB", v/1e3)
	case v < 1e9:
		return fmt.Sprintf("%.2f MB", v/1e6)
	}
	return fmt.Sprintf("%.1f GB", v/1e9)
}

func (r *Report) verdicts() table {
	t := table{Title: "Verdicts against " + r.Baseline, Headers: []string{"arm", "verdict"}, Words: true}
	for _, a := range r.Arms {
		if a.Difference != nil {
			t.Rows = append(t.Rows, []string{a.Name, a.Verdict})
		}
	}
	return t
}

func (r *Report) fronts() table {
	t := table{Title: "The best at a speed", Headers: []string{"tokens/s at least", "bits/byte", "tokens/s", "text B/s", "arm"}, Words: true}
	for _, f := range r.Front {
		row := []string{fmt.Sprintf("%g", f.AtLeast), "-", "-", "-", "no arm is so fast"}
		if f.Arm != "" {
			row = []string{row[0], score(f.BitsPerByte), figure(f.TokensPerSecond, 1), figure(f.TextPerSecond, 1), f.Arm}
		}
		if f.BetterText != "" {
			better := r.Arms[slices.IndexFunc(r.Arms, func(a Arm) bool { return a.Name == f.BetterText })]
			row[4] += fmt.Sprintf("; better, and not slower in text: %s (%s, %s B/s)", better.Name, score(better.BitsPerByte.Mean),
				figure(better.TextPerSecond, 1))
		}
		t.Rows = append(t.Rows, row)
	}
	if low, high, differ := r.tokenLengths(); differ {
		t.Note = fmt.Sprintf("The arms have other tokenizers, whose tokens are %.2f to %.2f bytes of text: so many tokens a second are not the same text "+
			"a second. Arms are chosen by tokens/s, as asked; compare their speed by text B/s. Where another arm is better and writes text no slower "+
			"than the one chosen, it is named beside it.", low, high)
	}
	return t
}

// head says what the tables rest on.
func (r *Report) head() []string {
	h := r.HeldOut
	lines := []string{fmt.Sprintf("Held-out text: %s, %s stories, %s bytes, sha256 %.12s.", clean(h.Name), digits.Comma(h.Stories), digits.Comma(h.Bytes), clean(h.SHA256))}
	if a := r.Arms[0]; a.TrainingTokens > 0 && a.Passes > 0 {
		uniform := true
		for _, b := range r.Arms {
			uniform = uniform && b.TrainingTokens == a.TrainingTokens && b.runs[0].CorpusSHA256 == a.runs[0].CorpusSHA256
		}
		if uniform {
			lines = append(lines, fmt.Sprintf("Training: %s tokens of %s.", digits.Comma(a.TrainingTokens), clean(a.runs[0].Corpus)))
		}
	}
	return lines
}

// legend says what the columns are.
func (r *Report) legend() []string {
	lines := []string{"Spread: of two runs their range, of more their standard deviation (n - 1); train loss in nats per token."}
	if r.Baseline != "" && len(r.Arms) > 1 {
		lines = append(lines, "Difference: to the baseline in bits per byte, less is better, with a 95 % interval"+r.method()+".")
	}
	read := "Weights: bytes of weights and scales for a token with every neuron read. Read: the same"
	if slices.ContainsFunc(r.Arms, func(a Arm) bool { return a.Measured }) {
		read += " without silent neurons where those were counted"
	}
	lines = append(lines, read+", for a token and for a byte of text.", "By: engine scores the quantised image as a chip computes it, graph the float model.")
	speed := ""
	for _, a := range r.Arms {
		if a.TokensPerSecond > 0 && a.Target != "" {
			speed = "Speeds are predictions for " + clean(a.Target) + ", means over the context."
			break
		}
	}
	if speed != "" {
		lines = append(lines, speed)
	}
	if len(r.Pareto) > 0 {
		lines = append(lines, "Nobody is both better and faster (text per second) than: "+strings.Join(r.Pareto, ", ")+".")
	}
	return lines
}

// method says how the intervals were made.
func (r *Report) method() string {
	used := map[string]bool{}
	for _, a := range r.Arms {
		if a.Difference != nil {
			used[a.Difference.BitsPerByte.Method] = true
		}
	}
	degrees := "degrees"
	if r.Noise.Degrees == 1 {
		degrees = "degree"
	}
	pooled := fmt.Sprintf("from the standard deviation %.4f of a run within its arm, over all arms (%d %s of freedom)", r.Noise.SD, r.Noise.Degrees, degrees)
	switch {
	case used[Paired] && used[Pooled]:
		return ", by pairs of equal seeds, or " + pooled + " where seeds differ or are two"
	case used[Paired]:
		return ", by pairs of equal seeds"
	case used[Pooled]:
		return " " + pooled
	}
	return "; one run each gives none"
}
