package bench

import (
	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/progress"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/train"
)

// Command is `chiplm bench`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure speed on this machine, and where the time goes",
	}
	cmd.AddCommand(trainCommand())
	return cmd
}

// stopped says that somebody interrupted a measurement.
type stopped struct{ cause error }

func (s stopped) Error() string { return "the measurement was stopped; nothing is kept of it" }

// Unwrap gives the cause.
func (s stopped) Unwrap() error { return s.cause }

// ExitCode is the program's status after an interrupt.
func (s stopped) ExitCode() int { return 130 }

// EndsProgram marks the status as that of the program.
func (s stopped) EndsProgram() {}

func trainCommand() *cobra.Command {
	var o Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Measure how fast a model trains, and what the time goes to",
		Long: `Take optimiser steps as train does - graphs, sum of gradients, update - and tell how fast they were
and what the time went to. No corpus is needed: token ids are drawn with a fixed seed, the id k with
a probability proportional to 1/(k+1), much as often as words of a text occur. Quantisation is on
from the first step, whatever quant.start says, and there is no teacher. One step before those that
count builds the graphs. Nothing is saved.

The peak that the speed is held against is the product of 1024 x 1024 matrices by the BLAS library,
on one thread for each worker, all at the same time: the best of some rounds before and after.

The environment variable CHIPLM_SIMD chooses the path, the instruction set that our own loops run
on: avx2, avx512, neon, library (the BLAS library's products) or plain (slow, for comparison);
unset, it is the best of this machine. All but library train to the same bytes.

The table has a row for each kind of work. Its time is added up over the workers, so that all rows
together are the workers' number times the time of a step; what no other row explains is "graph
machine and rest". Quantisation of activations counts apart, but for that inside attention. Rates
are those of one worker. GFLOP/s count the nominal model arithmetic of products: two operations
for each weight and token, three times in training, and causal attention without what is masked.
Products of the forward pass run on integers, which processors multiply faster than floats: they may
pass the peak. GB/s count what element-wise work must read and write once.`,
		Example: `  chiplm bench train
  chiplm bench train --config demo.yaml --workers 1 --steps 50
  chiplm bench train --set d_model=256 --set n_layers=4 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Steps < 0 || o.Steps == 0 && cmd.Flags().Changed("steps") {
				return usage.Errorf("--steps %d: give 1 or more, or leave it out for about %.0f s", o.Steps, defaultTime.Seconds())
			}
			bar := progress.NewSteps(cmd.ErrOrStderr(), "bench train")
			r, err := Train(cmd.Context(), o, bar.Update)
			bar.Done()
			if cause := cmd.Context().Err(); cause != nil {
				return stopped{cause}
			}
			if err != nil {
				return err
			}
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), r)
			}
			return r.write(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Config, "config", train.DefaultConfig, "model `file`, or the name of a built-in one")
	f.StringArrayVar(&o.Sets, "set", nil, "override a `key=value` of the model file, such as d_model=256; may be repeated")
	f.IntVar(&o.Workers, "workers", 0, "workers that run micro-batches at the same time (default: one a processor)")
	f.IntVar(&o.Steps, "steps", 0, "steps that count (default: as many as take about 10 s, at least two)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	complete := cobra.FixedCompletions(configs.Builtin(), cobra.ShellCompDirectiveDefault) // files as well
	if err := cmd.RegisterFlagCompletionFunc("config", complete); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}
