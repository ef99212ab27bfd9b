package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/eval"
	"github.com/chiplm/chiplm/train/bench"
)

// Report is what a measurement of decoding tells, also as JSON.
type Report struct {
	Model   string   `json:"model"`
	Path    string   `json:"path"`
	CPU     string   `json:"cpu"` // "" where it is not known
	SIMD    string   `json:"simd"`
	Text    string   `json:"text"` // where it is from
	Tokens  int      `json:"tokens"`
	Windows int      `json:"windows"`          // in which it is read, each from position 0
	Silent  *float64 `json:"silent,omitempty"` // share of neurons behind a closed gate; with a relu gate alone
	Search  bool     `json:"search"`           // decoding reads a part of the head only
	Rows    []Row    `json:"rows"`
}

// What a row measures.
const (
	Writing = "decode" // one token at a time, a token chosen after each
	Prompt  = "prompt" // known tokens, so many at a time; logits after the last of a window
)

// Row is the cost of a token in one way of feeding.
type Row struct {
	Name   string  `json:"run"`   // decode or prompt
	Batch  int     `json:"batch"` // tokens that go through the weights together
	Dense  bool    `json:"dense"` // every neuron is read
	Speeds []Speed `json:"speeds"`

	Weights int64   `json:"weight_bytes"` // read in all: weights, and rotary tables
	Cache   int64   `json:"cache_bytes"`  // keys and values
	PerTok  float64 `json:"bytes_per_token"`
	Neurons float64 `json:"neurons_read"` // rows of up that a pass reads, as a share of d_ff; with experts it may read several

	tokens int64
}

// Speed is how fast some threads are.
type Speed struct {
	Threads         int       `json:"threads"`
	TokensPerSecond float64   `json:"tokens_per_second"` // the median of the rounds
	Rounds          []float64 `json:"rounds"`
}

func (s *Speed) add(rate float64) {
	s.Rounds = append(s.Rounds, rate)
	sorted := slices.Sorted(slices.Values(s.Rounds))
	s.TokensPerSecond = sorted[len(sorted)/2]
}

// newReport has a row for everything that is to be measured.
func newReport(s *eval.Script, o Options) *Report {
	r := &Report{Model: s.Model, Path: s.Path, CPU: bench.CPUModel(), SIMD: engine.PathDefault.Resolve().String(), Text: s.Source,
		Windows: len(s.Windows), Search: !s.Image.Certified().Full}
	for _, w := range s.Windows {
		r.Tokens += len(w)
	}
	add := func(name string, batch int, dense bool) {
		row := Row{Name: name, Batch: batch, Dense: dense}
		for _, n := range o.Threads {
			row.Speeds = append(row.Speeds, Speed{Threads: n})
		}
		r.Rows = append(r.Rows, row)
	}
	ways := []bool{true}
	if s.Image.Model().Activation == engine.ReLU {
		ways = []bool{false, true}
	}
	for _, dense := range ways {
		add(Writing, 1, dense)
		for _, n := range Batches {
			if !dense && n > engine.SparseMost {
				continue // reads every neuron: the same as dense
			}
			add(Prompt, n, dense)
		}
	}
	return r
}

// setSilent keeps the share of silent neurons, which is the same in every way of feeding.
func (r *Report) setSilent(reads *engine.Reads, m engine.Model) {
	if m.Activation != engine.ReLU || reads.Positions == 0 {
		return
	}
	var open int64
	for _, n := range reads.Open {
		open += n
	}
	silent := 1 - float64(open)/float64(reads.Positions*int64(m.DFF)*int64(m.NLayers))
	r.Silent = &silent
}

// setReads keeps what the whole text took.
func (r *Row) setReads(reads *engine.Reads, m engine.Model) {
	r.tokens, r.Cache, r.Weights = reads.Positions, reads.Cache, reads.Total()-reads.Cache
	r.PerTok = float64(reads.Total()) / float64(max(reads.Positions, 1))
	var rows int64
	for _, n := range reads.UpRows {
		rows += n
	}
	r.Neurons = float64(rows) / float64(max(1, int64(m.DFF)*int64(m.NLayers)*reads.Blocks))
}

// write prints the report as a table of at most 100 columns.
func (r *Report) write(w io.Writer) error {
	var b bytes.Buffer
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("model:", "%s (%s)", r.Model, r.Path)
	line("machine:", "%s, path %s", cmp.Or(r.CPU, "a processor of unknown name"), r.SIMD)
	line("text:", "%s, %s tokens in %d windows", r.Text, digits.Comma(r.Tokens), r.Windows)
	if r.Silent != nil {
		line("neurons:", "%.1f %% are silent at a token", 100**r.Silent)
	}
	fmt.Fprintln(&b)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "run\tbatch\tneurons\tread")
	for _, s := range r.Rows[0].Speeds {
		threads := "threads"
		if s.Threads == 1 {
			threads = "thread"
		}
		fmt.Fprintf(t, "\t%d %s", s.Threads, threads)
	}
	fmt.Fprintln(t, "\tweights\tkeys, values\tbytes/token\t")
	for _, x := range r.Rows {
		which := "needed"
		if x.Dense {
			which = "all"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%.1f %%", x.Name, x.Batch, which, 100*x.Neurons)
		for _, s := range x.Speeds {
			fmt.Fprintf(t, "\t%s", digits.Comma(int64(s.TokensPerSecond+0.5)))
		}
		n := max(x.tokens, 1)
		fmt.Fprintf(t, "\t%s\t%s\t%s\t\n", digits.Comma((x.Weights+n/2)/n), digits.Comma((x.Cache+n/2)/n), digits.Comma(int64(x.PerTok+0.5)))
	}
	t.Flush()
	fmt.Fprintf(&b, "\nTokens per second by threads, the median of %d rounds; then bytes read per token, counted.\n", rounds)
	fmt.Fprint(&b, "decode chooses a token after each; prompt wants the logits of a window's last token only.\n")
	if r.Search {
		fmt.Fprint(&b, "The head is searched for the best: fewer bytes, as a chip wants, not less time on this machine.\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}
