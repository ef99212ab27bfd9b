package fetch

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
)

// unreachable is a request that got no answer, told in a few words: who, and why. The library's own text names the
// whole address, often twice.
type unreachable struct {
	text    string
	lasting bool // waiting seldom helps
	err     error
}

func (u *unreachable) Error() string { return u.text }

func (u *unreachable) Unwrap() error { return u.err }

// explain shortens the error of a request to a host.
func explain(err error, host string) error {
	who := host
	var asked *url.Error
	if errors.As(err, &asked) {
		if h := hostOf(asked.URL); h != "" {
			who = h // a redirect may have led elsewhere
		}
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		who = "the proxy"
	}
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var slow net.Error
	switch {
	case errors.As(err, &name):
		return &unreachable{"the name " + name.Name + " cannot be resolved", true, err}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &unreachable{who + " refuses the connection", true, err}
	case errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH):
		return &unreachable{"no network reaches " + who, true, err}
	case errors.As(err, &certificate):
		return &unreachable{who + " is not trusted: " + strings.TrimPrefix(certificate.Err.Error(), "x509: "), true, err}
	case errors.As(err, &slow) && slow.Timeout():
		return &unreachable{who + " does not answer in time", false, err}
	case errors.Is(err, io.EOF):
		return &unreachable{who + " ended the connection without an answer", false, err}
	}
	return &unreachable{who + ": " + innermost(err).Error(), false, err}
}

// innermost takes the addresses off an error of the network.
func innermost(err error) error {
	for {
		var asked *url.Error
		var op *net.OpError
		switch {
		case errors.As(err, &asked):
			err = asked.Err
		case errors.As(err, &op):
			err = op.Err
		default:
			return err
		}
	}
}

// hostOf is the host of an address, without its port.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
