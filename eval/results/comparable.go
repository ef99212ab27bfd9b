package results

import "fmt"

// Comparable says whether figures of the runs may stand in one table: all must have been scored on the same stories,
// byte for byte. The error names the first two runs that were not, and what to do.
func Comparable(runs []Run) error {
	for _, r := range runs {
		if err := ComparableWith(runs[:1], r.who(), r.HeldOut); err != nil {
			return err
		}
	}
	return nil
}

// ComparableWith is [Comparable] of runs and of what is no run yet: who, as the error calls it, and its stories.
func ComparableWith(runs []Run, who string, b HeldOut) error {
	for _, r := range runs {
		if a := r.HeldOut; a.SHA256 != b.SHA256 || a.Bytes != b.Bytes || a.Stories != b.Stories {
			return fmt.Errorf("%s was scored on %s (%d stories, %d bytes, sha256 %.12s) and %s on %s (%d stories, "+
				"%d bytes, sha256 %.12s): such scores do not compare. Score all on the same stories, or compare them apart",
				r.who(), a.Name, a.Stories, a.Bytes, a.SHA256, who, b.Name, b.Stories, b.Bytes, b.SHA256)
		}
	}
	return nil
}

func (r *Run) who() string { return fmt.Sprintf("%s (seed %d)", r.Arm, r.Seed) }
