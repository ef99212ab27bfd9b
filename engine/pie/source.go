package pie

import "embed"

// Files are the assembly and pie.h, which declares its functions and documents them.
//
//go:embed *.S pie.h
var Files embed.FS
