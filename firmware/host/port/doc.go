// Package port opens the serial port of a board, or a pseudo-terminal in its place, and finds the ports that boards are
// on.
//
// A port is opened raw: no byte is changed, echoed or waited for. A port, but not a
// pseudo-terminal, may not be opened by another program meanwhile. Its speed has no
// meaning over USB; bridges of other makes get [Baud].
//
// Caveat: on Linux a user needs the right to open serial ports, which distributions give to a group.
package port
