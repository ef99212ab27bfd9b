package virtual

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/chiplm/chiplm/firmware/host/loopback"
	"github.com/chiplm/chiplm/firmware/host/port"
)

// Socket lets programs talk to a board over WebSocket, such as pages in a browser: binary messages of any length are the bytes
// of the line, both ways. One client talks at a time, be it here or at the port: another is told so, and closed. A client
// that goes away is a cable that is pulled.
//
// It serves pages of this machine alone.
type Socket struct {
	board  *Board
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	clients sync.WaitGroup
}

// NewSocket makes the socket of a board. It must be closed before the board is.
func NewSocket(b *Board) *Socket {
	s := &Socket{board: b}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends the conversation, and waits until it has ended.
func (s *Socket) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.clients.Wait()
}

// enter counts a client in, unless the socket is closed.
func (s *Socket) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.clients.Add(1)
	}
	return !s.closed
}

// Serve takes clients over WebSocket at a listener, which it closes, until ctx ends, which is the good end, or the board has
// ended by itself.
func (b *Board) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := NewSocket(b)
	served := make(chan error, 1)
	go func() {
		err := loopback.Serve(ctx, l, s)
		cancel()
		served <- err
	}()
	err := b.Wait(ctx)
	cancel()
	s.Close()
	return errors.Join(err, <-served)
}

// What clients are told.
const (
	forSockets = "this is the line of a virtual board, for programs that speak WebSocket: connect chiplm page to it"
	foreign    = "a virtual board talks to pages of its own machine alone"
	taken      = "another program talks to this board"
	bytesOnly  = "the line is bytes: send binary messages"
)

// ServeHTTP takes a client.
func (s *Socket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !loopback.Ours(r):
		http.Error(w, foreign, http.StatusForbidden)
		return
	case r.Header.Get("Upgrade") == "":
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, forSockets, http.StatusUpgradeRequired)
		return
	case !s.enter():
		http.Error(w, "the virtual board has ended", http.StatusServiceUnavailable)
		return
	}
	defer s.clients.Done()
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // the origin was checked above
	if err != nil {
		return // the client was told
	}
	c.SetReadLimit(-1) // messages are passed on as they come, never held whole
	p, err := port.Open(s.board.Port())
	switch {
	case errors.Is(err, port.ErrBusy):
		goodbye(c, farewell{websocket.StatusTryAgainLater, taken})
	case err != nil:
		goodbye(c, farewell{websocket.StatusGoingAway, ""}) // the board has ended
	default:
		goodbye(c, s.talk(c, p))
	}
}

// patience is how long a client may take for what it is being sent when the socket ends, and then to answer the goodbye.
const patience = time.Second

// farewell is with what a client is closed.
type farewell struct {
	code   websocket.StatusCode
	reason string
}

// goodbye closes a client, which need not answer.
func goodbye(c *websocket.Conn, f farewell) {
	closed := make(chan struct{})
	go func() { // which takes seconds where no answer comes, and cannot be cut short
		defer close(closed)
		c.Close(f.code, f.reason)
		c.CloseNow()
	}()
	select {
	case <-closed:
	case <-time.After(patience):
	}
}

// talk passes bytes on until one of the two goes away, or the socket is closed.
func (s *Socket) talk(c *websocket.Conn, p io.ReadWriteCloser) farewell {
	ends := make(chan farewell, 2)
	// A read or a write that is cut off leaves no way to say goodbye, so the socket's end cuts off neither at once. But a
	// client that does not read may hold up a write, which must not hold up the end.
	writing, cut := context.WithCancel(context.Background())
	defer context.AfterFunc(s.ctx, func() { time.AfterFunc(patience, cut) })()
	go func() { ends <- fromClient(context.Background(), c, p) }()
	go func() { ends <- fromBoard(writing, c, p) }()
	defer p.Close() // the line is free before the client has answered to the goodbye, for which it may take its time
	select {
	case first := <-ends:
		s.board.giveUp(p)
		return first
	case <-s.ctx.Done():
		return farewell{websocket.StatusGoingAway, ""}
	}
}

// giveUp takes back what a client that is gone asked for: what the board has not read, and what it is doing. A few lines that
// it has read ahead are answered still, as the protocol wants it.
func (b *Board) giveUp(p io.Writer) {
	discard(b.master)
	_, _ = io.WriteString(p, "\nX\n") // there is room for it now
}

// fromClient passes on what a client sends.
func fromClient(ctx context.Context, c *websocket.Conn, p io.Writer) farewell {
	for {
		kind, message, err := c.Reader(ctx)
		if err != nil {
			return farewell{websocket.StatusNormalClosure, ""} // it went away
		}
		if kind != websocket.MessageBinary {
			return farewell{websocket.StatusUnsupportedData, bytesOnly}
		}
		if _, err := io.Copy(p, message); err != nil {
			return farewell{websocket.StatusGoingAway, ""} // one of the two did
		}
	}
}

// fromBoard passes on what a board says.
func fromBoard(ctx context.Context, c *websocket.Conn, p io.Reader) farewell {
	buf := make([]byte, 4096)
	for {
		n, err := p.Read(buf)
		if n > 0 && c.Write(ctx, websocket.MessageBinary, buf[:n]) != nil || err != nil {
			return farewell{websocket.StatusGoingAway, ""}
		}
	}
}
