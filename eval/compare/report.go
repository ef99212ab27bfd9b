package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/eval/results"
)

// Report is a comparison of arms on the same held-out stories.
type Report struct {
	HeldOut    results.HeldOut `json:"held_out"`
	Baseline   string          `json:"baseline"` // empty: none, and no differences
	Confidence float64         `json:"confidence"`
	Noise      Noise           `json:"noise"` // of bits per byte, over all arms
	Arms       []Arm           `json:"arms"`  // in the order that was asked for
	Front      []Fastest       `json:"front,omitempty"`
	Pareto     []string        `json:"pareto"` // arms that no other beats in both bits per byte and bytes of text per second, slowest first
	Notes      []string        `json:"notes"`
}

// Arm is what the runs of a variant came to. Costs are means over its runs.
type Arm struct {
	Name    string   `json:"arm"`
	Seeds   []int64  `json:"seeds"`
	Folders []string `json:"folders"` // of the runs, by seed

	BitsPerByte  Summary `json:"bits_per_byte"`
	NatsPerToken Summary `json:"nats_per_token"`
	TrainingLoss Summary `json:"training_loss"` // nats per token
	ScoredBy     string  `json:"scored_by"`

	TextBytesPerToken float64 `json:"text_bytes_per_token"`
	Parameters        int     `json:"parameters"`
	ImageBytes        int64   `json:"image_bytes"`    // 0: no image
	ReadPerToken      float64 `json:"read_per_token"` // bytes; without silent neurons where Measured
	ReadPerByte       float64 `json:"read_per_text_byte"`
	DensePerToken     float64 `json:"dense_per_token"` // bytes, every neuron and output row read
	Measured          bool    `json:"measured"`
	Target            string  `json:"target"`
	TokensPerSecond   float64 `json:"tokens_per_second"`     // predicted; 0: no prediction
	TextPerSecond     float64 `json:"text_bytes_per_second"` // predicted; 0: no prediction
	TrainingTokens    int64   `json:"training_tokens"`
	Passes            float64 `json:"passes"` // of the training text

	Difference *Difference `json:"difference"` // nil for the baseline, and without one
	Verdict    string      `json:"verdict"`

	runs  []results.Run
	score sample
}

// Fastest is the best arm at a predicted speed or faster.
type Fastest struct {
	AtLeast float64 `json:"at_least_tokens_per_second"`
	Arm     string  `json:"arm"` // empty: no arm is so fast

	BitsPerByte     float64 `json:"bits_per_byte"`
	TokensPerSecond float64 `json:"tokens_per_second"`
	TextPerSecond   float64 `json:"text_bytes_per_second"`

	// BetterText is the best of the arms that write at least as many bytes of text a second as Arm, where that is better
	// than Arm: longer tokens take fewer a second for the same text. Empty: none is.
	BetterText string `json:"better_at_same_text_speed,omitempty"`
}

// Orders of a report's arms.
var orders = map[string]func(a, b Arm) int{
	"bits":       func(a, b Arm) int { return cmp.Compare(a.BitsPerByte.Mean, b.BitsPerByte.Mean) },
	"speed":      func(a, b Arm) int { return cmp.Compare(b.TextPerSecond, a.TextPerSecond) },
	"read":       func(a, b Arm) int { return cmp.Compare(a.ReadPerByte, b.ReadPerByte) },
	"parameters": func(a, b Arm) int { return cmp.Compare(a.Parameters, b.Parameters) },
	"sweep":      func(a, b Arm) int { return cmp.Compare(a.runs[0].Order, b.runs[0].Order) },
	"name":       func(a, b Arm) int { return strings.Compare(a.Name, b.Name) },
}

// Orders are the names of the orders in which arms can be listed.
func Orders() []string {
	var names []string
	for name := range orders {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// New compares the arms of a set with one of them, or with none when baseline is empty. The order is one of [Orders]; equal
// arms come by their names. speeds are those, in tokens per second, for which the best arm is asked. It fails when the runs
// were scored on different stories.
func New(s *Set, baseline, order string, speeds []float64) (*Report, error) {
	less, ok := orders[order]
	if !ok {
		return nil, usage.Errorf("--sort %q is unknown; there are %s", order, strings.Join(Orders(), ", "))
	}
	var all []results.Run
	for _, g := range s.Groups {
		all = append(all, g.Runs...)
	}
	if err := results.Comparable(all); err != nil {
		return nil, err
	}
	r := &Report{HeldOut: all[0].HeldOut, Baseline: baseline, Confidence: Confidence, Notes: slices.Clone(s.Notes)}
	var scores []sample
	for _, g := range s.Groups {
		a := newArm(g)
		scores = append(scores, a.score)
		r.Arms = append(r.Arms, a)
	}
	r.Noise = pool(scores)
	if at := slices.IndexFunc(r.Arms, func(a Arm) bool { return a.Name == baseline }); at >= 0 {
		base := r.Arms[at]
		for i := range r.Arms {
			if i != at {
				r.Arms[i].Difference = r.Arms[i].against(&base, r.Noise)
				r.Arms[i].Verdict = r.Arms[i].Difference.verdict()
			}
		}
	} else if len(r.Arms) > 1 {
		none := s.none
		if none == "" { // whoever called chose none
			none = "name it with --baseline ARM"
		}
		r.Notes = append(r.Notes, "no baseline, so no differences: "+none)
	}
	r.warn(all)
	slices.SortStableFunc(r.Arms, func(a, b Arm) int { return cmp.Or(less(a, b), strings.Compare(a.Name, b.Name)) })
	r.Pareto = pareto(r.Arms)
	for _, speed := range speeds {
		r.Front = append(r.Front, fastest(r.Arms, speed))
	}
	return r, nil
}

func newArm(g Group) Arm {
	first := g.Runs[0]
	a := Arm{Name: g.Name, ScoredBy: first.Quality.ScoredBy, Parameters: first.Cost.Parameters, ImageBytes: first.Cost.ImageBytes,
		Target: first.Cost.Target, TrainingTokens: first.Training.Tokens, runs: g.Runs}
	if n := first.Training.CorpusTokens; n > 0 {
		a.Passes = float64(first.Training.Tokens) / float64(n)
	}
	figure := func(of func(results.Run) float64) sample {
		var s sample
		for _, r := range g.Runs {
			s.seeds, s.values = append(s.seeds, r.Seed), append(s.values, of(r))
		}
		return s
	}
	// Of figures that not every run has, none is told.
	mean := func(of func(results.Run) float64) float64 {
		s := figure(of)
		if slices.Contains(s.values, 0) {
			return 0
		}
		return stat.Mean(s.values, nil)
	}
	for _, r := range g.Runs {
		a.Folders = append(a.Folders, r.Folder)
	}
	a.score = figure(func(r results.Run) float64 { return r.Quality.BitsPerByte })
	a.Seeds = a.score.seeds
	a.BitsPerByte = a.score.summary()
	a.NatsPerToken = figure(func(r results.Run) float64 { return r.Quality.NatsPerToken }).summary()
	a.TrainingLoss = figure(func(r results.Run) float64 { return r.Training.Loss }).summary()
	a.TextBytesPerToken = mean(func(r results.Run) float64 { return r.Quality.TextBytesPerToken })
	a.DensePerToken = mean(func(r results.Run) float64 { return float64(r.Cost.BytesPerToken) })
	a.ReadPerToken = a.DensePerToken
	if measured := mean(func(r results.Run) float64 { return r.Cost.MeasuredPer }); measured > 0 {
		a.ReadPerToken, a.Measured = measured, true
	}
	a.ReadPerByte = a.ReadPerToken / a.TextBytesPerToken
	a.TokensPerSecond = mean(func(r results.Run) float64 { return r.Cost.TokensPerSecond })
	a.TextPerSecond = mean(func(r results.Run) float64 { return r.Cost.TextPerSecond })
	return a
}

// warn notes what makes figures of one table compare less well than they look.
func (r *Report) warn(runs []results.Run) {
	mixed := func(what, rest string, of func(results.Run) string) {
		count := map[string]int{}
		for _, run := range runs {
			if v := of(run); v != "" {
				count[v]++
			}
		}
		if len(count) < 2 {
			return
		}
		var list []string
		for v, n := range count {
			list = append(list, fmt.Sprintf("%s (%d)", clean(v), n))
		}
		slices.Sort(list)
		more := ""
		if len(list) > 6 {
			more = fmt.Sprintf(" and %d others", len(list)-6)
			list = list[:6]
		}
		r.Notes = append(r.Notes, fmt.Sprintf("%s differ between runs: %s%s; %s", what, strings.Join(list, ", "), more, rest))
	}
	mixed("programs", "what changed between them is in the differences", func(x results.Run) string { return x.Program })
	mixed("training texts", "differences may come from the text", func(x results.Run) string {
		return fmt.Sprintf("%s %.8s", x.Corpus, x.CorpusSHA256)
	})
	mixed("training tokens", "more training is no better variant", func(x results.Run) string { return digits.Comma(x.Training.Tokens) })
	mixed("teachers", "what a teacher was trained with is on top", func(x results.Run) string {
		if x.Teacher == "" {
			return "none"
		}
		return x.Teacher
	})
	mixed("ways of scoring", "graph scores float weights that no chip runs", func(x results.Run) string { return x.Quality.ScoredBy })
	mixed("chips of the predicted speeds", "speeds of different chips do not compare", func(x results.Run) string { return x.Cost.Target })
	tokenizers := map[string]bool{}
	for _, run := range runs {
		tokenizers[run.TokenizerSHA256] = true
	}
	if len(tokenizers) > 1 {
		r.Notes = append(r.Notes, "tokenizers differ: compare bits per byte and bytes of text, not nats per token, training loss and tokens per second")
	}
	var single []string
	for _, a := range r.Arms {
		if len(a.Seeds) == 1 {
			single = append(single, a.Name)
		}
	}
	if len(single) > 0 && r.Noise.Degrees > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("one run only: %s. Its spread is unknown; intervals take it to be that of the arms with more",
			strings.Join(single, ", ")))
	}
	pooled := slices.ContainsFunc(r.Arms, func(a Arm) bool { return a.Difference != nil && a.Difference.BitsPerByte.Method == Pooled })
	if a := r.noisiest(); a != "" && pooled {
		r.Notes = append(r.Notes, fmt.Sprintf("%s is much noisier than the rest and widens every pooled interval; leave it out with --arms", a))
	}
	if r.Noise.Degrees > 0 && r.Noise.SD == 0 {
		r.Notes = append(r.Notes, "runs of different seeds have the very same score: did the seed reach the training?")
	}
}

// noisiest names the arm whose runs differ more than those of all others, by an F test that finds one in a hundred tables of
// equally noisy arms.
func (r *Report) noisiest() string {
	for i, a := range r.Arms {
		own := pool([]sample{a.score})
		var others []sample
		for j, b := range r.Arms {
			if j != i {
				others = append(others, b.score)
			}
		}
		rest := pool(others)
		if own.Degrees == 0 || rest.Degrees == 0 || rest.SD == 0 {
			continue
		}
		ratio := distuv.F{D1: float64(own.Degrees), D2: float64(rest.Degrees)}
		if f := own.SD / rest.SD; ratio.Survival(f*f) < 0.01/float64(len(r.Arms)) {
			return a.Name
		}
	}
	return ""
}

// pareto names the arms with a predicted speed that no other beats, or equals and beats, in both text per second and bits
// per byte; slowest first.
func pareto(arms []Arm) []string {
	var on []Arm
	for _, a := range arms {
		beaten := a.TextPerSecond == 0 || slices.ContainsFunc(arms, func(b Arm) bool {
			return b.TextPerSecond >= a.TextPerSecond && b.BitsPerByte.Mean <= a.BitsPerByte.Mean &&
				(b.TextPerSecond > a.TextPerSecond || b.BitsPerByte.Mean < a.BitsPerByte.Mean)
		})
		if !beaten {
			on = append(on, a)
		}
	}
	slices.SortStableFunc(on, func(a, b Arm) int {
		return cmp.Or(cmp.Compare(a.TextPerSecond, b.TextPerSecond), strings.Compare(a.Name, b.Name))
	})
	names := []string{}
	for _, a := range on {
		names = append(names, a.Name)
	}
	return names
}

// fastest finds the best arm at so many predicted tokens per second or more; of equal ones the faster.
func fastest(arms []Arm, speed float64) Fastest {
	best := Fastest{AtLeast: speed, BitsPerByte: math.Inf(1)}
	for _, a := range arms {
		bits := a.BitsPerByte.Mean
		if a.TokensPerSecond >= speed && a.TokensPerSecond > 0 && (bits < best.BitsPerByte || bits == best.BitsPerByte && a.TokensPerSecond > best.TokensPerSecond) {
			best = Fastest{AtLeast: speed, Arm: a.Name, BitsPerByte: bits, TokensPerSecond: a.TokensPerSecond, TextPerSecond: a.TextPerSecond}
		}
	}
	if best.Arm == "" {
		best.BitsPerByte = 0
		return best
	}
	lowest := best.BitsPerByte
	for _, a := range arms {
		if a.TextPerSecond >= best.TextPerSecond && a.BitsPerByte.Mean < lowest {
			best.BetterText, lowest = a.Name, a.BitsPerByte.Mean
		}
	}
	return best
}

// tokenLengths are the shortest and the longest mean token of the arms with a predicted speed, in bytes of text, and whether
// their tokenizers differ.
func (r *Report) tokenLengths() (low, high float64, differ bool) {
	low = math.Inf(1)
	tokenizers := map[string]bool{}
	for _, a := range r.Arms {
		if a.TokensPerSecond > 0 {
			low, high = min(low, a.TextBytesPerToken), max(high, a.TextBytesPerToken)
			tokenizers[a.runs[0].TokenizerSHA256] = true
		}
	}
	return low, high, len(tokenizers) > 1
}
