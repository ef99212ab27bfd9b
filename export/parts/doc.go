// Package parts knows what lies in a chip's flash: the partition table, in both of its forms, and the files of a
// firmware build. It reads and checks; writing to a chip is another package's work.
//
//	t, err := parts.ParseCSV(text)     // partitions.csv
//	t, err := parts.ParseBinary(bytes) // what lies at 0x8000 of a chip
//	fw, err := parts.OpenFirmware("firmware/build")
//
// A firmware folder is what a build of ESP-IDF leaves, with flasher_args.json in it, or the folder above it; or three
// files named as [Bootloader], [TableFile] and [App] are. Every file is held to the chip it is meant for: an application
// for another chip would be refused by the boot loader, at every start.
//
// Caveats: encrypted flash and signed tables are not supported, and one chip is known, the ESP32-S3.
package parts
