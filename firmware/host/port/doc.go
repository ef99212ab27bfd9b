// Package port opens the serial port of a board, or a pseudo-terminal in its place, and finds the ports that boards are
// on.
//
// A port is opened raw: no byte is changed, echoed or waited for. It is locked for one program of chiplm at a time; a port,
// but not a pseudo-terminal, may not be opened by any other program meanwhile either. Its speed has no meaning over USB; bridges of other makes get [Baud].
//
// Caveats: the port of a real board has not been opened yet, in tests a pseudo-terminal stands for it. Listing ports on
// macOS needs cgo. On Linux a user needs the right to open serial ports, which distributions give to a group.
package port
