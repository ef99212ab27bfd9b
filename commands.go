package main

import (
	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/shards"
	"github.com/chiplm/chiplm/engine/pie/check"
	"github.com/chiplm/chiplm/eval"
	evalbench "github.com/chiplm/chiplm/eval/bench"
	"github.com/chiplm/chiplm/eval/compare"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/cost"
	"github.com/chiplm/chiplm/firmware/host"
	"github.com/chiplm/chiplm/firmware/host/flash"
	"github.com/chiplm/chiplm/firmware/web"
	"github.com/chiplm/chiplm/train"
	"github.com/chiplm/chiplm/train/bench"
	"github.com/chiplm/chiplm/train/sweep"
)

// commands are the subcommands, in the order of the road from text to chip.
func commands() []*cobra.Command {
	text := data.Command()
	text.AddCommand(shards.Command())
	speed := bench.Command()
	speed.AddCommand(evalbench.DecodeCommand())
	return []*cobra.Command{
		text,
		bpe.Command(func(path string) (bpe.Corpus, error) { return data.Open(path) }),
		train.Command(export.Trainable),
		sweep.Command(),
		checkpoints.Command(),
		eval.Command(),
		eval.VerifyCommand(),
		eval.SampleCommand(),
		compare.Command(),
		eval.ReleaseCommand(),
		released.Command(),
		export.Command(),
		export.ImportCommand(),
		export.ImageCommand(),
		cost.Command(),
		check.Command(),
		flash.Command(),
		host.ChatCommand(),
		host.BoardCommand(),
		web.Command(web.Dist()),
		speed,
	}
}
