// Package board is the firmware of the chip, and its virtual board: the C sources that an ESP-IDF application builds for
// the ESP32-S3 (firmware/main lists them), built by cgo for this machine and run by [Run].
//
// Everything but the port layer is the same code: boot.c obeys the image's placement, protocol.c answers the requests of
// firmware/PROTOCOL.md, team.c hands work to the second core. port.h lists what a port must offer; port_host.c offers it
// with two threads and the file descriptors of a pseudo-terminal or of pipes.
//
// A virtual board computes the bits of a real one. Its times are this machine's.
package board
