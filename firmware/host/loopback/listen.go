package loopback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"syscall"

	"github.com/chiplm/chiplm/data/usage"
)

// ErrInUse is wrapped when another program listens at an address.
var ErrInUse = errors.New("in use by another program")

// Listen listens at an address of this machine that no other machine can reach, such as 127.0.0.1:7410; port 0 is any that is
// free. Errors are those of a command line that cannot be understood, or wrap [ErrInUse] or the operating system's.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return nil, usage.Errorf("--listen %q: an address and a port, such as 127.0.0.1:7410, or 127.0.0.1:0 for any port that is free", address)
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, usage.Errorf("--listen %s: there is no port %s: one from 1 to 65535, or 0 for any that is free", address, port)
	}
	if !local(host) {
		return nil, usage.Errorf("--listen %s: it listens on this machine alone: 127.0.0.1:%s", address, port)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is %w, perhaps an earlier chiplm: end that first, or take any port that is free with --listen %s",
			address, ErrInUse, net.JoinHostPort(host, "0"))
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: ports below 1024 are the system's: choose a higher one with --listen: %w", address, err)
	case err != nil:
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	// A name is what the system says it is.
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		l.Close()
		return nil, fmt.Errorf("--listen %s: on this machine that is %s, which others can reach: give 127.0.0.1:%s", address, l.Addr(), port)
	}
	return l, nil
}

// local says whether a host is this machine by a loopback address, or by the name that stands for one.
func local(host string) bool {
	if host == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.IsLoopback()
}
