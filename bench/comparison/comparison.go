// Package comparison is what the programs of comparison have in common: signals, exit statuses, and refusals of a command
// line.
package comparison

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// ErrUsage is wrapped by errors of a command line that cannot be understood, for which a program ends with status 2.
var ErrUsage = errors.New("see --help")

// Main runs a program of that name and ends with its status: 2 for [ErrUsage], 1 for any other error. The first interrupt
// cancels the context, the second ends the program at once.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, ErrUsage):
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Parse reads a command line of flags alone. The error is [flag.ErrHelp] or wraps [ErrUsage].
func Parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return ErrUsage // the flag package has said what is wrong
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: %w", f.Arg(0), ErrUsage)
	}
	return nil
}
