package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/firmware/host/line"
	"github.com/chiplm/chiplm/firmware/host/port"
)

// addPort adds the flag --port.
func addPort(c *cobra.Command, into *string) {
	c.Flags().StringVar(into, "port", "auto", "serial port of the board, such as /dev/ttyACM0; auto: that of the one there is")
}

// connect opens the port of a board and greets it. What the board remarks beside its answers goes to errs if remarks
// is set. The name is that of the port.
func connect(ctx context.Context, name string, remarks bool, errs io.Writer) (c *line.Client, found string, err error) {
	if name == "" {
		return nil, "", usage.Errorf("--port is empty: name a port, or leave it out for the one board there is")
	}
	if name == "auto" {
		if name, err = port.Find(); err != nil {
			return nil, "", err
		}
	}
	p, err := port.Open(name)
	if err != nil {
		return nil, "", err
	}
	opt := line.Options{}
	if remarks {
		opt.Remark = func(s string) { fmt.Fprintf(errs, "board: %q\n", s) }
	}
	c = line.New(p, opt)
	if err := c.Hello(ctx); err != nil {
		c.Close()
		return nil, "", onPort(name, err)
	}
	return c, name, nil
}

// onPort names the port in an error, unless the user ended it.
func onPort(name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
