package loopback

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	headerWait  = 10 * time.Second // within which a request must tell what it wants
	requestWait = 30 * time.Second // within which all of it must have come
	idleWait    = 2 * time.Minute
	stopWait    = 3 * time.Second // for answers under way when the server ends
	mostHeader  = 64 << 10        // bytes: all programs on loopback share their cookies
)

// Serve answers requests until ctx ends, which is its good end. Requests with a foreign Host are refused.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{
		Handler:           guard(h),
		ReadHeaderTimeout: headerWait,
		ReadTimeout:       requestWait,
		IdleTimeout:       idleWait,
		MaxHeaderBytes:    mostHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
	defer cancel()
	if err := s.Shutdown(soon); err != nil {
		s.Close() // whoever still reads has had time
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// guard refuses requests with a foreign Host.
func guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(hostOf(r.Host)) {
			http.Error(w, "this server is for its own machine: open it as 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// hostOf is a Host without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// Ours says whether a request was made by a page of this machine, or by a program that is no browser.
func Ours(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && (u.Scheme == "http" || u.Scheme == "https") && local(u.Hostname())
}

// Address is where a listener is found, as scheme://address:port/.
func Address(scheme string, l net.Listener) string {
	u := url.URL{Scheme: scheme, Host: l.Addr().String(), Path: "/"}
	return u.String()
}
