package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/firmware/host/line"
	"github.com/chiplm/chiplm/firmware/host/loopback"
	"github.com/chiplm/chiplm/firmware/host/virtual"
)

// ErrDiffers is wrapped when a board computes other bits than the host.
var ErrDiffers = errors.New("the board differs from the host")

// BoardCommand is `chiplm board`.
func BoardCommand() *cobra.Command {
	var opt virtual.Options
	var without bool
	var listen, runs string
	c := &cobra.Command{
		Use:   "board",
		Short: "Ask a board about itself, prove its bits, or start a virtual board",
		Long: `Ask a board about itself, or start a virtual board.

With --virtual, the firmware runs on this machine behind a pseudo-terminal, whose path is printed:
a port like any other, for chiplm chat and for other programs. It has two cores, the memories that
chiplm export plans with, and computes the chip's bits; its times are those of this machine. What
this machine's kernels need beyond the chip's, and 8 KB for padding that a chip has beyond the
plan, it gets on top of SRAM ("lent" of board info). It runs until it is interrupted; clients may
come and go, one at a time.

MODEL is an image, an export folder, or a run, a checkpoint or a released model (chiplm models), of
which an image is made as chiplm export does.

With --listen, it also takes clients over WebSocket, such as the page of chiplm page, at an address
of this machine, which is printed after the port: ws://127.0.0.1:7411/. Binary messages are the
bytes of the line, both ways.`,
		Example: `  chiplm board info
  chiplm board --virtual combo --link /tmp/board
  chiplm chat --port /tmp/board "Once upon a time"
  chiplm board --virtual exports/my-run-esp32s3 --listen 127.0.0.1:7411`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("virtual") {
				for _, f := range []string{"sram", "psram", "no-psram", "link", "listen"} {
					if cmd.Flags().Changed(f) {
						return usage.Errorf("--%s is a property of a virtual board: give its model with --virtual", f)
					}
				}
				return cmd.Help()
			}
			if opt.Model == "" {
				return usage.Errorf("--virtual is empty: name " + modelHelp)
			}
			for flag, bytes := range map[string]int64{"sram": opt.SRAM, "psram": opt.PSRAM} {
				if bytes < 0 || bytes > virtual.MostMemory {
					return usage.Errorf("--%s %d is not between 0 and %d bytes", flag, bytes, virtual.MostMemory)
				}
			}
			if opt.SRAM == 0 && cmd.Flags().Changed("sram") {
				return usage.Errorf("--sram 0: a board has some; --no-psram is one without PSRAM")
			}
			if without || opt.PSRAM == 0 && cmd.Flags().Changed("psram") {
				opt.PSRAM = -1
			}
			if listen == "" && cmd.Flags().Changed("listen") {
				return usage.Errorf("--listen is empty: give an address, such as 127.0.0.1:7411, or leave it out")
			}
			return runVirtual(cmd.Context(), opt, runs, listen, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&opt.Model, "virtual", "", "start a virtual board with this `MODEL`: "+modelHelp)
	addRuns(c, &runs)
	c.Flags().Int64Var(&opt.SRAM, "sram", 0, "bytes of SRAM for a model (default: usable of the target esp32s3)")
	c.Flags().Int64Var(&opt.PSRAM, "psram", 0, "bytes of PSRAM, 0 for none (default: usable of the target esp32s3)")
	c.Flags().BoolVar(&without, "no-psram", false, "a board without PSRAM")
	c.Flags().StringVar(&opt.Link, "link", "", "make this symbolic link to its port, and remove it in the end; a link to a board that runs stays")
	c.Flags().StringVar(&listen, "listen", "", "take clients over WebSocket too, at this `ADDRESS` of this machine; port 0: any that is free")
	c.AddCommand(infoCommand(), digestCommand(), benchmarkCommand(), profileCommand())
	return c
}

// runVirtual runs a virtual board until ctx ends.
func runVirtual(ctx context.Context, opt virtual.Options, runs, listen string, out, errs io.Writer) (err error) {
	path, remove, err := chipImage(ctx, runs, opt.Model, errs)
	if err == nil {
		defer func() { err = errors.Join(err, remove()) }() // after the board, which copies it at every boot
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	opt.Model = path
	var l net.Listener
	if listen != "" { // before there is a board: the address may be in use
		if l, err = loopback.Listen(ctx, listen); err != nil {
			return err
		}
		defer l.Close()
	}
	b, err := virtual.Start(opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	name := b.Port()
	if opt.Link != "" {
		name = opt.Link
	}
	failure, err := b.Booted(ctx)
	if ctx.Err() != nil {
		return nil // an interrupt is how it is meant to end
	}
	if err != nil {
		return err
	}
	if failure != nil {
		fmt.Fprintf(errs, "note: the board runs without its model: %v\n", failure)
	}
	fmt.Fprintf(errs, "a virtual board runs until Ctrl-C; talk to it: chiplm chat --port %s\n", name)
	if _, err := fmt.Fprintln(out, name); err != nil {
		return err
	}
	if l == nil {
		return b.Wait(ctx)
	}
	if _, err := fmt.Fprintln(out, loopback.Address("ws", l)); err != nil {
		return err
	}
	return b.Serve(ctx, l)
}

// asked runs one request of a command and prints its JSON object.
func asked(cmd *cobra.Command, name string, ask func(context.Context, *line.Client) (json.RawMessage, error)) error {
	c, found, err := connect(cmd.Context(), name, false, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := ask(cmd.Context(), c)
	if err != nil {
		return onPort(found, err)
	}
	return jsonout.Write(cmd.OutOrStdout(), answer)
}

func infoCommand() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:     "info",
		Short:   "Print what a board and its model are",
		Long:    "Prints what a board, its memories and its model are, as one JSON object.",
		Example: "  chiplm board info --port /dev/ttyACM0",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return asked(cmd, name, func(ctx context.Context, c *line.Client) (json.RawMessage, error) { return c.Info(ctx) })
		},
	}
	addPort(c, &name)
	c.Flags().Bool("json", true, "print one JSON object, as always")
	return c
}

func benchmarkCommand() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "benchmark",
		Short: "Measure memories, kernels and hand-over of a board",
		Long: `Lets a board measure its memories, kernels and the hand-over between its cores, which takes some
seconds, and prints the figures as one JSON object. chiplm cost --calibrate reads it. Those of a
virtual board are this machine's: its target is host, and it says "virtual".`,
		Example: `  chiplm board benchmark > board.json
  chiplm cost --calibrate board.json --out my-board.yaml
  chiplm cost --calibrate virtual-board.json --target host --out this-machine.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return asked(cmd, name, func(ctx context.Context, c *line.Client) (json.RawMessage, error) { return c.Benchmark(ctx) })
		},
	}
	addPort(c, &name)
	c.Flags().Bool("json", true, "print one JSON object, as always")
	return c
}

func profileCommand() *cobra.Command {
	var name, prompt string
	s := line.Sampling{Tokens: 64}
	c := &cobra.Command{
		Use:   "profile",
		Short: "Print where the time of a token goes on a board",
		Long: `Lets a board write with its profile switched on, and prints the mean microseconds a token of each
operation, as one JSON object. Switched on, the profile costs some time itself.`,
		Example: `  chiplm board profile --prompt "Once upon a time" --tokens 200`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.Tokens < 2 || s.Tokens > line.MostTokens {
				return usage.Errorf("--tokens %d is not between 2 and %d: the first token needs no pass through the weights, so one alone has no profile", s.Tokens, line.MostTokens)
			}
			return asked(cmd, name, func(ctx context.Context, c *line.Client) (answer json.RawMessage, err error) {
				if err := c.SetProfiling(ctx, true); err != nil {
					return nil, err
				}
				defer func() {
					if off := c.SetProfiling(context.WithoutCancel(ctx), false); err == nil {
						err = off
					}
				}()
				if _, err := c.Say(ctx, prompt, s, func(line.Token) error { return nil }); err != nil {
					return nil, err
				}
				return c.Profile(ctx)
			})
		},
	}
	addPort(c, &name)
	c.Flags().StringVar(&prompt, "prompt", "Once upon a time", "what the board goes on from")
	c.Flags().IntVar(&s.Tokens, "tokens", s.Tokens, "write at most so many tokens, 2 or more")
	c.Flags().Bool("json", true, "print one JSON object, as always")
	return c
}
