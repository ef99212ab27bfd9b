package results

import "fmt"

// Comparable says whether figures of the runs may stand in one table: all must have been scored on the same stories,
// byte for byte. The error names the first two runs that were not, and what to do.
func Comparable(runs []Run) error {
	for _, r := range runs {
		first := runs[0]
		if a, b := first.HeldOut, r.HeldOut; a.SHA256 != b.SHA256 || a.Bytes != b.Bytes || a.Stories != b.Stories {
			return fmt.Errorf("%s (seed %d) was scored on %s (%d stories, %d bytes, sha256 %.12s) and %s (seed %d) on %s (%d stories, "+
				"%d bytes, sha256 %.12s): such scores do not compare. Score all on the same stories, or compare them apart",
				first.Arm, first.Seed, a.Name, a.Stories, a.Bytes, a.SHA256, r.Arm, r.Seed, b.Name, b.Stories, b.Bytes, b.SHA256)
		}
	}
	return nil
}
