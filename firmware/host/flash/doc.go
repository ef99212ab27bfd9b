// Package flash puts firmware and a model on a board: it decides what goes where, has esptool write it, and compares
// afterwards what the chip holds.
//
// Everything is checked before the first byte is written: the hashes of the export, the image itself, the chip that
// each file is for, and the room in the partition table. When a model is written alone, the table that counts is the
// one on the board, which is read first.
//
// Caveats: esptool does the talking and must be installed. Encrypted flash and secure boot are not supported.
package flash
