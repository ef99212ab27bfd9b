package train

import (
	"strconv"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
)

// printBudget tells what a model costs, before the first step is taken.
func printBudget(say note, cfg *configs.Config, plan Plan, workers int) {
	b := cfg.Budget()
	say("%s: what a model of these sizes costs (bytes as in an image)", cfg.Name)
	say("  %-10s %-16s %4s %7s %12s %12s %11s %12s",
		"tensors", "a token", "bits", "number", "parameters", "code bytes", "scale bytes", "bytes/token")
	row := func(class, reading, bits string, c configs.ClassBudget) {
		say("  %-10s %-16s %4s %7d %12s %12s %11s %12s", class, reading, bits, c.Tensors,
			digits.Comma(c.Parameters), digits.Comma(c.Codes), digits.Comma(c.Scales), digits.Comma(c.TokenRead))
	}
	for _, c := range b.Classes {
		row(string(c.Class), "reads "+string(c.Reading), strconv.Itoa(c.Bits), c)
	}
	row("total", "", "", b.Total)
	say("arithmetic: %.2f MFLOP per token in training (6 x %s weights in products + attention)",
		float64(b.TrainFLOP)/1e6, digits.Comma(b.Products))
	say("training: %s tokens in %s steps of %d micro-batches x %d sequences x %d tokens",
		digits.Comma(int64(plan.Steps)*plan.TokensPerStep), digits.Comma(int64(plan.Steps)), plan.MicroBatches,
		cfg.Train.MicroBatch, cfg.ContextLength)
	say("memory: about %s MB with workers=%d", megabytes(predictMemory(cfg, workers)), workers)
}
