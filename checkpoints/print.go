package checkpoints

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
)

// width is what every line of a table fits into.
const width = 100

// describe words the configuration: the sizes, and how the model is quantised.
func describe(c *configs.Config) (model, quant []string) {
	model = []string{
		fmt.Sprintf("%s: %s parameters", c.Name, digits.Comma(c.Parameters())),
		fmt.Sprintf("vocabulary %s, width %d, layers %d, heads %d, feed-forward %d (%s)", digits.Comma(c.VocabSize), c.DModel, c.NLayers, c.NHeads, c.DFF, c.Activation),
	}
	more := fmt.Sprintf("context %d", c.ContextLength)
	if c.PLEDim > 0 {
		more += fmt.Sprintf(", per-layer embeddings %d", c.PLEDim)
	}
	if c.Experts > 1 {
		more += fmt.Sprintf(", %d experts", c.Experts)
	}
	if c.NgramRows > 0 {
		more += fmt.Sprintf(", bigram table of %d rows", c.NgramRows)
	}
	if c.TieEmbeddings {
		more += ", tied head"
	}
	if c.QKNorm {
		more += ", QK-norm"
	}
	model = append(model, more)
	line := weightText(c.WeightQuant(configs.ClassTrunk))
	for _, class := range []configs.TensorClass{configs.ClassEmbedding, configs.ClassHead, configs.ClassPLETable, configs.ClassNgramTable} {
		if q := c.WeightQuant(class); q != c.WeightQuant(configs.ClassTrunk) {
			quant = append(quant, fmt.Sprintf("%s: %s", class, weightText(q)))
		}
	}
	activations := "activations of 8 bits"
	if c.Quant.Activations.Bits == 32 {
		activations = "float activations"
	}
	return model, append([]string{line + "; " + activations}, quant...)
}

func weightText(q configs.WeightQuant) string {
	switch {
	case q.Bits == 32:
		return "float weights"
	case q.Group == 0:
		return fmt.Sprintf("weights of %d bits, a scale (%s) per row", q.Bits, q.Scale)
	}
	return fmt.Sprintf("weights of %d bits, a scale (%s) per %d columns", q.Bits, q.Scale, q.Group)
}

func printInfo(w io.Writer, s summary) error {
	var b bytes.Buffer
	printHead(&b, s)
	fmt.Fprintf(&b, "\n%-28s %15s %10s %10s %10s %10s %10s\n", "tensor", "shape", "bits/group", "mean", "rms", "max abs", "not finite")
	for _, t := range s.Tensors {
		fmt.Fprintf(&b, "%-28s %15s %10s %10s %10s %10s %10d\n", t.Name, shapeText(t.Shape), bitsText(t),
			figure(t.Mean), figure(t.RMS), figure(t.MaxAbs), t.NonFinite)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func printHead(b *bytes.Buffer, s summary) {
	row := func(name string, lines ...string) {
		for _, line := range lines {
			for _, part := range wrap(line, width-12) {
				fmt.Fprintf(b, "%-11s %s\n", name, part)
				name = ""
			}
		}
	}
	st := s.State
	row("checkpoint", shownPath(string(s.Dir)))
	row("model", s.model...)
	row("quantised", s.quant...)
	row("training", fmt.Sprintf("step %s, %s tokens, %s sequences, %d workers", digits.Comma(st.Step), digits.Comma(st.Tokens), digits.Comma(st.Sequences), st.Workers))
	row("loss", fmt.Sprintf("last %s, best validation %s nats per token", loss(st.LastLoss), loss(st.BestValid)))
	if s.Optimiser {
		row("optimiser", "stored: training can be resumed")
	} else {
		row("optimiser", "not stored: for use, not for resuming")
	}
	row("saved", fmt.Sprintf("%s by chiplm %s", st.SavedAt.Format("2006-01-02 15:04:05 MST"), st.CreatedBy))
	row("corpus", shownPath(st.Corpus))
	row("held out", shownPath(st.Valid))
	if st.Teacher != "" {
		row("teacher", shownPath(st.Teacher))
	}
	row("SHA-256", "model     "+s.ModelSHA256, "config    "+st.ConfigHash, "tokenizer "+st.TokenizerHash)
	if st.CorpusHash != "" {
		row("", "corpus    "+st.CorpusHash)
	}
	if st.ValidHash != "" {
		row("", "held out  "+st.ValidHash)
	}
	if st.TeacherHash != "" {
		row("", "teacher   "+st.TeacherHash)
	}
}

func printComparison(w io.Writer, a, b summary, d *Comparison) error {
	var out bytes.Buffer
	for i, s := range []summary{a, b} {
		fmt.Fprintf(&out, "%c  %s\n   step %s, %s tokens, loss %s, model %s\n", 'A'+i, shownPath(string(s.Dir)), digits.Comma(s.State.Step), digits.Comma(s.State.Tokens),
			loss(s.State.LastLoss), shortHash(s.ModelSHA256))
	}
	switch {
	case d.EqualModels:
		fmt.Fprintln(&out, "\nThe weights are the same bytes.")
	default:
		fmt.Fprintln(&out, "\nThe weights differ.")
	}
	if d.EqualTokenizer {
		fmt.Fprintln(&out, "The tokenizers are the same.")
	} else {
		fmt.Fprintln(&out, "The tokenizers differ: losses per token cannot be compared.")
	}
	if len(d.Config) == 0 {
		fmt.Fprintln(&out, "The configurations are the same.")
	} else {
		fmt.Fprintf(&out, "\n%-34s %31s %31s\n", "key", "A", "B")
		for _, k := range d.Config {
			fmt.Fprintf(&out, "%-34s %31s %31s\n", cut(k.Key, 34), cut(orDash(k.A), 31), cut(orDash(k.B), 31))
		}
	}
	fmt.Fprintf(&out, "\n%-28s %20s %10s %10s %13s %11s\n", "tensor", "shape", "max diff", "rms diff", "changed", "equal bytes")
	for _, t := range d.Tensors {
		if !t.Comparable {
			fmt.Fprintf(&out, "%-28s %20s %10s %10s %13s %11s\n", t.Name, cut(orDash(shapeText(t.ShapeA))+" | "+orDash(shapeText(t.ShapeB)), 20), "-", "-", "-", "no")
			continue
		}
		equal := "no"
		if t.EqualBytes {
			equal = "yes"
		}
		fmt.Fprintf(&out, "%-28s %20s %10s %10s %13s %11s\n", t.Name, shapeText(t.ShapeA), figure(t.MaxAbsDiff), figure(t.RMSDiff), digits.Comma(t.Changed), equal)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func shapeText(shape []int) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = strconv.Itoa(d)
	}
	return strings.Join(parts, "x")
}

func bitsText(t TensorStats) string {
	switch {
	case t.Bits == 32:
		return "32"
	case t.Group == 0:
		return fmt.Sprintf("%d/row", t.Bits)
	}
	return fmt.Sprintf("%d/%d", t.Bits, t.Group)
}

func figure(f float64) string { return strconv.FormatFloat(f, 'g', 4, 64) }

func loss(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "none yet"
	}
	return strconv.FormatFloat(f, 'f', 4, 64)
}

func shortHash(s string) string { return s[:min(len(s), 12)] }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// cut shortens a text to n runes.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-3]) + "..."
	}
	return s
}

// wrap breaks a text into lines of at most n runes, in the middle of a word if need be: the texts are paths and hashes.
func wrap(s string, n int) []string {
	r := []rune(s)
	lines := []string{}
	for len(r) > n {
		lines = append(lines, string(r[:n]))
		r = r[n:]
	}
	return append(lines, string(r))
}
