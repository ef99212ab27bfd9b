package train

import (
	"fmt"
	"io"
	"strconv"

	"github.com/chiplm/chiplm/configs"
)

// printBudget tells what a model costs, before the first step is taken.
func printBudget(w io.Writer, cfg *configs.Config, plan Plan, corpusTokens int64, workers int) {
	b := cfg.Budget()
	fmt.Fprintf(w, "%s: what a model of these sizes costs (bytes as in an image)\n", cfg.Name)
	fmt.Fprintf(w, "  %-10s %-16s %4s %7s %12s %12s %11s %12s\n",
		"tensors", "a token", "bits", "number", "parameters", "code bytes", "scale bytes", "bytes/token")
	row := func(class, reading, bits string, c configs.ClassBudget) {
		fmt.Fprintf(w, "  %-10s %-16s %4s %7d %12s %12s %11s %12s\n", class, reading, bits, c.Tensors,
			thousands(c.Parameters), thousands(c.Codes), thousands(c.Scales), thousands(c.TokenRead))
	}
	for _, c := range b.Classes {
		row(string(c.Class), "reads "+string(c.Reading), strconv.Itoa(c.Bits), c)
	}
	row("total", "", "", b.Total)
	fmt.Fprintf(w, "arithmetic: %.2f MFLOP per token in training (6 x %s weights in products + attention)\n",
		float64(b.TrainFLOP)/1e6, thousands(b.Products))
	tokens := int64(plan.Steps) * plan.TokensPerStep
	fmt.Fprintf(w, "training: %s tokens (%.2f passes) in %s steps of %d micro-batches x %d sequences x %d tokens\n",
		thousands(tokens), float64(tokens)/float64(corpusTokens), thousands(int64(plan.Steps)), plan.MicroBatches,
		cfg.Train.MicroBatch, cfg.ContextLength)
	fmt.Fprintf(w, "memory: about %s MB with workers=%d\n", thousands(predictMemory(cfg, workers)/1e6), workers)
}

// thousands writes a number with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
