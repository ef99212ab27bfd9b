package regular

import (
	"fmt"
	"io/fs"
)

// absent is an error that has its own words for what fs.ErrNotExist is.
type absent struct{ error }

func (a absent) Unwrap() []error { return []error{a.error, fs.ErrNotExist} }

// Absentf makes an error as fmt.Errorf does, which wraps [fs.ErrNotExist] too without adding its words: they say less than
// those that name what is missing, and what to do.
func Absentf(format string, args ...any) error { return absent{fmt.Errorf(format, args...)} }
