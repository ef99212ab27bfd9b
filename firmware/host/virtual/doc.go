// Package virtual puts a virtual board behind a pseudo-terminal, so that programs that talk to a board over a serial
// port can be used, and tested, without one.
//
//	b, err := virtual.Start(virtual.Options{Model: "model.clm"})
//	defer b.Close()
//	p, err := port.Open(b.Port())
//
// Clients may come and go. Closing the board is a cable that is pulled. [Board.Serve] takes clients over WebSocket too.
package virtual
