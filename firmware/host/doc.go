// Package host holds the commands that talk to a board over its serial port: chiplm chat lets it write, chiplm board
// asks it about itself, proves that it computes the host's bits, and starts a virtual one.
//
// The exchange is firmware/PROTOCOL.md; package line speaks it, package port finds and opens ports, package virtual is
// the virtual board, package loopback serves programs of this machine alone, and package flash puts firmware and a
// model on a real one.
package host
