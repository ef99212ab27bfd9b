//go:build !linux

package export

import "errors"

// exchange lets two paths change places in one step, which only Linux offers.
func exchange(string, string) error { return errors.ErrUnsupported }
