package train

import (
	"strconv"

	"github.com/chiplm/chiplm/configs"
)

// printBudget tells what a model costs, before the first step is taken.
func printBudget(say note, cfg *configs.Config, plan Plan, workers int) {
	b := cfg.Budget()
	say("%s: what a model of these sizes costs (bytes as in an image)", cfg.Name)
	say("  %-10s %-16s %4s %7s %12s %12s %11s %12s",
		"tensors", "a token", "bits", "number", "parameters", "code bytes", "scale bytes", "bytes/token")
	row := func(class, reading, bits string, c configs.ClassBudget) {
		say("  %-10s %-16s %4s %7d %12s %12s %11s %12s", class, reading, bits, c.Tensors,
			thousands(c.Parameters), thousands(c.Codes), thousands(c.Scales), thousands(c.TokenRead))
	}
	for _, c := range b.Classes {
		row(string(c.Class), "reads "+string(c.Reading), strconv.Itoa(c.Bits), c)
	}
	row("total", "", "", b.Total)
	say("arithmetic: %.2f MFLOP per token in training (6 x %s weights in products + attention)",
		float64(b.TrainFLOP)/1e6, thousands(b.Products))
	say("training: %s tokens in %s steps of %d micro-batches x %d sequences x %d tokens",
		thousands(int64(plan.Steps)*plan.TokensPerStep), thousands(int64(plan.Steps)), plan.MicroBatches,
		cfg.Train.MicroBatch, cfg.ContextLength)
	say("memory: about %s MB with workers=%d", megabytes(predictMemory(cfg, workers)), workers)
}

// thousands writes a number with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
