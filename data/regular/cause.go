package regular

import (
	"errors"
	"io/fs"
	"os"
)

// Cause is an error without the path of a file, for messages that name it as users know it: a temporary one means nothing to them.
func Cause(err error) error {
	if e := new(fs.PathError); errors.As(err, &e) {
		return e.Err
	}
	if e := new(os.LinkError); errors.As(err, &e) {
		return e.Err
	}
	return err
}
