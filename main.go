// Command chiplm trains tiny language models with 4-bit quantisation in the loop, scores them in bits per byte, and
// exports them to a five-dollar chip. Each subcommand lives beside the work it starts; this file only joins them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/qat/simd"
)

func main() {
	// A program that was started with a signal ignored, as by nohup, leaves it ignored.
	var signals []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	// A reader that has gone away is an error of the write: progress nobody reads must not end a training.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit status: 0, 1 for work that failed, 2 for a command line that
// cannot be understood, 130 after an interrupt, 141 (as the shell reports it) when the reader of the output went away.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	out := &checkedWriter{w: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil && out.err != nil {
		err = fmt.Errorf("writing the result: %w", out.err)
	}
	if err == nil {
		return 0
	}
	if errors.Is(err, syscall.EPIPE) {
		return 141
	}
	if !interrupted(ctx, err) {
		fmt.Fprintf(stderr, "chiplm: %v\n", err)
	}
	return status(ctx, err, stderr)
}

// interrupted says whether an error says nothing more than that the user ended the work, of which status tells.
func interrupted(ctx context.Context, err error) bool {
	var coded usage.Coded
	text := err.Error()
	return ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.As(err, &coded) && !strings.Contains(text, "\n") &&
		strings.HasSuffix(text, context.Canceled.Error())
}

// status is the exit status of an error that was told.
func status(ctx context.Context, err error, stderr io.Writer) int {
	var coded usage.Coded
	switch {
	case errors.As(err, &coded):
		return coded.ExitCode()
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "chiplm: interrupted; the same command starts or goes on again")
		return 130
	}
	return 1
}

// checkedWriter remembers the first failure to write, which help texts and tables do not look at.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// Fd is the descriptor under the writer, by which a command knows a terminal.
func (c *checkedWriter) Fd() uintptr {
	if f, ok := c.w.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "chiplm",
		Short: "Train tiny language models and put them on a five-dollar chip",
		Long: `chiplm trains tiny language models with 4-bit quantisation in the loop and puts them on a chip.

The road: a model file (YAML) and a text become a checkpoint (train); a checkpoint is scored
exactly as the chip will compute it (eval bpb), written into an image with its memory placement
(export), and proved against the C engine that the chip runs.`,
		Example: `  chiplm train --config combo.yaml --corpus tinystories-train.txt
  chiplm eval bpb
  chiplm export --target esp32s3
  chiplm sample --prompt "Once upon a time"`,
		Version:       checkpoints.ProgramVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if _, err := simd.Chosen(); err != nil {
				return usage.Errorf("%w", err)
			}
			return nil
		},
	}
	root.AddCommand(commands()...)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 100 "))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage.Errorf("%w; see %s --help", plainFlagError(err), cmd.CommandPath())
	})
	markUsageErrors(root)
	return root
}

// plainFlagError says what a flag wants, where the error of a number speaks of the function that read it.
func plainFlagError(err error) error {
	var flag *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &flag) || !errors.As(err, &number) {
		return err
	}
	wants := "a number"
	switch kind := flag.GetFlag().Value.Type(); {
	case errors.Is(number, strconv.ErrRange):
		wants = "a number that is not so large"
	case kind == "bool":
		wants = "true or false"
	case strings.HasPrefix(kind, "uint"):
		wants = "a whole number, 0 or more"
	case strings.HasPrefix(kind, "int"):
		wants = "a whole number"
	}
	return fmt.Errorf("--%s %q: wants %s", flag.GetFlag().Name, flag.GetValue(), wants)
}

// markUsageErrors lets every command report wrong arguments as a usage error, with a hint where to look. A command
// that only groups others says so when it is given a word that names none of them. An argument that is empty, as an unset
// variable of a shell gives, is refused, but for a prompt.
func markUsageErrors(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		check = cobra.ArbitraryArgs
		if cmd.HasSubCommands() {
			check = cobra.NoArgs
		}
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage.Errorf("%w; see %s --help", err, cmd.CommandPath())
		}
		if at := slices.Index(args, ""); at >= 0 && !strings.Contains(cmd.Use, "PROMPT") {
			return usage.Errorf("argument %d is empty: give it, or leave it out if it may be; see %s --help", at+1, cmd.CommandPath())
		}
		return nil
	}
	if cmd.RunE == nil && cmd.Run == nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, sub := range cmd.Commands() {
		markUsageErrors(sub)
	}
}
