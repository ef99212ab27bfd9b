package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/chiplm/chiplm/firmware/host"
	"github.com/chiplm/chiplm/firmware/host/loopback"
	"github.com/chiplm/chiplm/firmware/host/virtual"
)

// virtualBoard is a board that the page can connect to without hardware.
type virtualBoard struct {
	*virtual.Board
	listener net.Listener
	address  string
}

// startVirtual starts a virtual board with the first model, as the chip would get it.
func startVirtual(ctx context.Context, models []*model, notes io.Writer) (*virtualBoard, error) {
	if len(models) == 0 {
		return nil, errors.New("this program carries no released model for a virtual board: name a model, or leave out --virtual")
	}
	m := models[0]
	made := host.Patience(notes, fmt.Sprintf("making the image of %s for the virtual board", m.name))
	c, err := m.chip.get(ctx)
	made()
	if err != nil {
		return nil, fmt.Errorf("the virtual board: %s %w: %w", m.name, ErrNoChip, err)
	}
	l, err := loopback.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the virtual board: %w", err)
	}
	b, err := virtual.Start(virtual.Options{Model: c.path})
	if err != nil {
		l.Close()
		return nil, err
	}
	failure, err := b.Booted(ctx)
	if err != nil {
		l.Close()
		return nil, errors.Join(err, b.Close())
	}
	if failure != nil {
		fmt.Fprintf(notes, "note: the virtual board runs without its model: %v\n", failure)
	}
	return &virtualBoard{b, l, loopback.Address("ws", l)}, nil
}

// serve takes clients until ctx ends.
func (v *virtualBoard) serve(ctx context.Context) error {
	return errors.Join(v.Serve(ctx, v.listener), v.Close())
}
