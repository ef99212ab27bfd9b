package released

import (
	"fmt"
	"strings"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/usage"
)

// Card is the model card, in Markdown. It says nothing that the facts do not say, so it can be held to them.
func (f *Facts) Card() []byte {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	row := func(name, format string, args ...any) { p("| %s | %s |\n", name, fmt.Sprintf(format, args...)) }
	table := func(title string) { p("\n## %s\n\n| | |\n|---|---|\n", title) }

	p("# %s\n\n", f.Name)
	p("A language model of %s parameters that continues text like that of %s.\n"+
		"The C engine of chiplm runs it on a computer and on the chip, with the same bits.\n\n", digits.Comma(f.Parameters), inline(f.Text.Name))
	p("    chiplm sample --model %[1]s --prompt %[2]q\n    chiplm export --model %[1]s --target esp32s3\n", f.Name, f.Sample.Prompt)

	table("Model")
	row("parameters", "%s", digits.Comma(f.Parameters))
	row("vocabulary", "%s tokens", digits.Comma(f.VocabSize))
	row("context", "%s tokens", digits.Comma(f.ContextLength))
	row("weights", "%s", f.Weights)
	if f.PostTraining {
		row("quantised", "after training")
	}
	row("image", "%s bytes", digits.Comma(f.ImageBytes))
	row("read for a token", "%s bytes of weights and scales, when every neuron and every row of the output layer is read", digits.Comma(f.BytesPerToken))

	table("Training")
	row("text", "%s, %s stories, %s bytes (sha256 %.12s)", inline(f.Text.Name), digits.Comma(f.Text.Stories), digits.Comma(f.Text.Bytes), f.Text.SHA256)
	if f.Text.Source != "" {
		row("from", "%s", inline(f.Text.Source))
	}
	row("licence of the text", "%s", inline(f.Text.Licence))
	row("tokens", "%s, %.2f passes over the %s of the text", digits.Comma(f.Training.Tokens), f.Passes(), digits.Comma(f.Text.Tokens))
	steps := digits.Comma(f.Training.Steps)
	if f.Training.Planned > 0 {
		steps += " of " + digits.Comma(f.Training.Planned) + ": training was not finished"
	}
	row("steps, seed", "%s, %d", steps, f.Training.Seed)
	row("program", "chiplm %s", f.Training.Program)
	teacher, own := "", false
	if t := f.Training.Teacher; t != nil {
		who := "run " + inline(t.Run)
		teacher, own = " --teacher "+usage.ShellWord(checkpoints.DefaultRoot+"/"+t.Run), true
		if name, ok := strings.CutPrefix(t.Run, Prefix); ok {
			who, own = "released model "+name, false
			teacher = " --teacher " + usage.ShellWord(t.Run)
		}
		when := ""
		if t.From > 0 {
			when = fmt.Sprintf(" from %g %% of the steps on", 100*t.From)
		}
		row("teacher", "the %s (sha256 of its weights %.12s): its distributions are %g of what was aimed at%s, the text the rest", who, t.ModelSHA256, t.Share, when)
	}
	corpus, valid := f.Text.Corpus, ""
	if corpus == "" {
		corpus = f.Text.Name
	}
	if f.Text.Valid != "" {
		valid = " --valid " + usage.ShellWord(f.Text.Valid)
	}
	p("\nThe command, with config.yaml and tokenizer.json of this folder:\n\n    chiplm train --config config.yaml --tokenizer tokenizer.json --corpus %s%s%s\n",
		usage.ShellWord(corpus), valid, teacher)
	if f.Training.Planned > 0 {
		p("\nwhich goes on to step %s, where this model stopped at %s.\n", digits.Comma(f.Training.Planned), digits.Comma(f.Training.Steps))
	}
	if own {
		p("\nIts teacher is a run of its own, which is no part of this release.\n")
	}

	s := &f.Score
	table("Score")
	row("held-out text", "%s, its first %s stories, %s bytes (sha256 %.12s)", inline(s.Stories), digits.Comma(s.Count), digits.Comma(s.Bytes), s.SHA256)
	row("bits per byte", "%.4f", s.BitsPerByte)
	row("with the end of each story", "%.4f", s.BitsPerByteWithEnd)
	row("nats per token", "%.4f", s.NatsPerToken)
	row("bytes of text per token", "%.3f", s.TextBytesPerToken)
	p("\nThe C engine scored these %s tokens with the image of this folder: `chiplm eval bpb --model %s --stories %s --n %d`.\n",
		digits.Comma(s.Tokens), f.Name, usage.ShellWord(s.Stories), s.Count)

	p("\n## What it writes\n\nPrompt %q, temperature %g, top %d, seed %d:\n\n", f.Sample.Prompt, f.Sample.Temperature, f.Sample.TopK, f.Sample.Seed)
	for _, line := range strings.Split(f.Sample.Prompt+f.Sample.Text, "\n") {
		p("> %s\n", inline(line))
	}

	p("\n## Limits\n\n"+
		"- It knows the kind of text it was trained on and little else: it follows no instructions and answers no questions.\n"+
		"- What it writes is invented, often contradicts itself, and has the biases of its text. Nobody has filtered it.\n"+
		"- It sees %s tokens at a time, about %s bytes of such text.\n"+
		"- The image holds the weights quantised; the floats of training are not part of a release, so it cannot be\n  trained further. It can teach another model: chiplm train --teacher.\n",
		digits.Comma(f.ContextLength), digits.Comma(int64(float64(f.ContextLength)*s.TextBytesPerToken)))

	p("\n## Files\n\n| file | bytes | sha256 |\n|---|---|---|\n")
	for _, name := range []string{ImageFile, ConfigFile, TokenizerFile} {
		p("| %s | %s | %s |\n", name, digits.Comma(f.Files[name].Bytes), f.Files[name].SHA256)
	}
	p("\n%s holds all of this for programs. The weights as they were trained had the SHA-256\n%s; the golden run has the digest %s.\n",
		FactsFile, f.ModelSHA256, f.Digest)
	p("\n## Licence\n\nThe model is under the licence of chiplm, MIT. The text it was trained on is under %s.\n", inline(f.Text.Licence))
	return []byte(b.String())
}

// inline is text within a line of Markdown, which it must not break.
func inline(text string) string { return markdown.Replace(text) }

var markdown = strings.NewReplacer("\r", " ", "\n", " ", `\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "<", "&lt;", "[", `\[`)
