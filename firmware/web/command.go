package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/scratch"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export/targets"
	"github.com/chiplm/chiplm/firmware/host"
	"github.com/chiplm/chiplm/firmware/host/loopback"
)

// DefaultAddress is where the page is served unless the user says otherwise. It stays the same, for a browser remembers by
// the address which ports a page may open.
const DefaultAddress = "127.0.0.1:7410"

// options of the command.
type options struct {
	listen, firmware, out, root string
	virtual, noOpen, asJSON     bool
	elsewhere                   bool // any free port will do where the address is in use
	dist                        fs.FS
	open                        func(address string) error // in a browser
}

// Command is `chiplm page`. dist is the page, [Dist] but for a test's.
func Command(dist fs.FS) *cobra.Command {
	opt := options{dist: dist, open: openBrowser}
	c := &cobra.Command{
		Use:   "page [MODEL...]",
		Short: "Serve the page: run a model in the browser, flash a board, watch every token",
		Long: `Serve a page on this machine, and open it in the browser. It runs a model in three ways that write
the same story for the same seed: in the browser itself, on a board that is plugged in (which it can
flash), and on a virtual board. Every token is shown with its time as it comes. No request leaves
the machine, and no other machine can reach it. It ends with Ctrl-C.

Without MODEL, the page has the released models (chiplm models). Else it has those that are named,
in this order: a released model, a run or a checkpoint (an image is made of it, as chiplm export
does), an image, or a folder that chiplm export wrote.

Boards need a browser with Web Serial, such as Chrome, Edge or Opera. --firmware names the build
folder of the firmware, as for chiplm flash; without it the page has the firmware that a named
export carries, or none, and writes models alone. --virtual also starts a virtual board with the
first model, and tells the page of it.

--out writes the page with its models as plain files instead, for any static host. An older page
there is replaced; a folder with anything else in it is refused. Serve it by https: other pages
may not open ports. Virtual boards talk to pages of their own machine alone.`,
		Example: `  chiplm page
  chiplm page --virtual
  chiplm page --firmware firmware/build
  chiplm page my-run combo
  chiplm page --out public`,
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return released.Completions(cmd.Context(), opt.root), cobra.ShellCompDirectiveDefault // or a path
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.elsewhere = !cmd.Flags().Changed("listen")
			if err := opt.refuse(cmd); err != nil {
				return err
			}
			return opt.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&opt.listen, "listen", DefaultAddress, "`ADDRESS` of this machine to serve at; port 0: any that is free")
	c.Flags().BoolVar(&opt.noOpen, "no-open", false, "open no browser")
	c.Flags().StringVar(&opt.firmware, "firmware", "", "build folder of the firmware, for the page to flash")
	c.Flags().BoolVar(&opt.virtual, "virtual", false, "start a virtual board too, with the first model")
	c.Flags().StringVar(&opt.out, "out", "", "write the page into this folder instead")
	c.Flags().StringVar(&opt.root, "runs", checkpoints.DefaultRoot, "folder of the runs")
	c.Flags().BoolVar(&opt.asJSON, "json", false, "print one JSON object")
	return c
}

// refuse refuses flags that are empty, and those that would do nothing.
func (o *options) refuse(cmd *cobra.Command) error {
	for flag, value := range map[string]string{"listen": o.listen, "firmware": o.firmware, "out": o.out} {
		if value == "" && cmd.Flags().Changed(flag) {
			return usage.Errorf("--%s is empty: give its value, or leave it out", flag)
		}
	}
	if o.out == "" {
		return nil
	}
	for _, flag := range []string{"listen", "no-open", "virtual"} {
		if cmd.Flags().Changed(flag) {
			return usage.Errorf("--%s is for serving the page, which --out does not", flag)
		}
	}
	return nil
}

func (o *options) run(ctx context.Context, names []string, out, notes io.Writer) (err error) {
	notes = &oneByOne{w: notes}
	s := new(site)
	if s.page, err = pageFiles(o.dist); err != nil {
		return err
	}
	target, err := targets.Load(targetName)
	if err != nil {
		return err
	}
	if o.firmware == "" {
		o.firmware = carried(names)
	}
	if o.firmware != "" {
		if s.firmware, err = openFirmware(o.firmware); err != nil {
			return err
		}
	}
	if o.out == "" { // an address that cannot be had is told before models are opened, which takes a while
		l, err := o.listener(ctx, io.Discard)
		if err != nil {
			return err
		}
		l.Close()
	} else if _, err := replaceable(o.out); err != nil {
		return err
	}
	work, done, err := scratch.Folder("page")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	life, end := context.WithCancel(ctx)
	models := &opener{life: life, root: o.root, work: work, firmware: o.firmware, target: target, notes: notes}
	s.models, err = models.open(names)
	defer func() { // before the folder goes that images are made in
		end()
		for _, m := range s.models {
			m.chip.wait()
		}
	}()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case o.out != "":
		return o.write(ctx, s, out, notes)
	}
	return o.serve(life, s, out, notes)
}

// listener listens where the user said, or where it may.
func (o *options) listener(ctx context.Context, notes io.Writer) (net.Listener, error) {
	l, err := loopback.Listen(ctx, o.listen)
	if o.elsewhere && errors.Is(err, loopback.ErrInUse) {
		fmt.Fprintf(notes, "note: %s is in use, perhaps by an earlier chiplm page: another port is taken\n", o.listen)
		return loopback.Listen(ctx, "127.0.0.1:0")
	}
	return l, err
}

// write writes the page as plain files.
func (o *options) write(ctx context.Context, s *site, out, notes io.Writer) error {
	defer host.Patience(notes, "making images for the chip")()
	a, err := s.write(ctx, o.out, func(why error) { fmt.Fprintf(notes, "note: %v\n", why) })
	if err != nil {
		return err
	}
	if o.asJSON {
		return jsonout.Write(out, map[string]any{"out": o.out, "files": a.Files})
	}
	bytes := int64(0)
	for _, f := range a.Files {
		bytes += f.Bytes
	}
	_, err = fmt.Fprintf(out, "%s: %d files, %s bytes; serve it by https, with index.html for the folder itself\n", o.out, len(a.Files)+1, digits.Comma(bytes))
	return err
}

// serve serves the page until ctx ends, which is its good end.
func (o *options) serve(ctx context.Context, s *site, out, notes io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told := func(err error) error { // an interrupt is how it is meant to end
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	ended := make(chan error, 2)
	running := 1
	var v *virtualBoard
	if o.virtual {
		var err error
		if v, err = startVirtual(ctx, s.models, notes); err != nil {
			return told(err)
		}
		s.virtual = v.address
	}
	l, err := o.listener(ctx, notes) // when there is all to answer with: else a browser would wait without a word
	if v != nil {
		if err != nil {
			v.listener.Close()
			return told(errors.Join(err, v.Close()))
		}
		running++
		go func() { ended <- v.serve(ctx) }()
	}
	if err != nil {
		return told(err)
	}
	go func() { ended <- loopback.Serve(ctx, l, newServer(s)) }()
	address := loopback.Address("http", l)
	err = o.tell(address, s.virtual, out, notes)
	for range running {
		if err != nil {
			cancel() // one that fails ends both
		}
		err = errors.Join(err, <-ended)
	}
	return err
}

// tell prints where the page is, and opens it.
func (o *options) tell(address, virtual string, out, notes io.Writer) error {
	fmt.Fprintln(notes, "the page is served until Ctrl-C, to this machine alone")
	var err error
	if o.asJSON {
		at := map[string]any{"address": address, "virtual": nil}
		if virtual != "" {
			at["virtual"] = virtual
		}
		err = jsonout.Write(out, at)
	} else {
		_, err = fmt.Fprintln(out, address)
	}
	if err != nil || o.noOpen {
		return err
	}
	if err := o.open(address); err != nil {
		fmt.Fprintf(notes, "note: no browser was opened (%v): open the address in one\n", err)
	}
	return nil
}
