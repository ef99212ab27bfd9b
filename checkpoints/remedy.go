package checkpoints

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// withRemedy adds to the fault of a checkpoint what a person can do about it. It loads other checkpoints of the run, the
// newest first, so that the one it promises can be used.
func withRemedy(dir string, fault error) error {
	first := "copy it again, or "
	switch {
	case errors.Is(fault, ErrVersion), errors.Is(fault, ErrIncomplete):
		first = "" // a copy would be no better
	case errors.Is(fault, ErrDamaged), errors.Is(fault, ErrFormat), errors.Is(fault, ErrTensors):
	default:
		return fault // the checkpoint itself may be whole
	}
	var all []stored
	run, name := filepath.Dir(dir), filepath.Base(dir)
	if stepForm.MatchString(name) {
		all, _ = list(run) // without it there is no other to name
	}
	var away []string // the complete ones that are newer than the one that loads
	for _, s := range all {
		if !s.complete {
			continue
		}
		if s.dir != dir {
			if _, err := read(s.dir, true); err == nil {
				if len(away) == 0 {
					return fmt.Errorf("%w; %sname another, such as %s", fault, first, s.dir)
				}
				return fmt.Errorf("%w; %sdelete %s or move it out of %s, and the run goes on from %s; to use that one as it is, name %s",
					fault, first, strings.Join(away, " and "), run, filepath.Base(s.dir), s.dir)
			}
		}
		away = append(away, filepath.Base(s.dir))
	}
	if len(all) > 1 {
		return fmt.Errorf("%w; %sname a checkpoint of another run: no other of this one can be read", fault, first)
	}
	return fmt.Errorf("%w; %sname another checkpoint", fault, first)
}
