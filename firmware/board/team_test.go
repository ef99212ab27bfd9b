package board_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// Two cores hand jobs over, however long each takes, and one that waits for the other sleeps: it would take the processor from
// it on a machine with other work.
func TestTeamSleeps(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("how often a thread gave up its processor is asked of Linux here")
	}
	sources(t, "*.h", "port_host.c")
	path := filepath.Join(t.TempDir(), "team")
	args := slices.Concat(warnings, []string{"-O1", "-g", "-I../../engine", "-I."}, sources(t, "testdata/team/main.c", "team.c"), []string{"-pthread", "-o", path})
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path).Output()
	var second, first int
	if _, scan := fmt.Sscan(string(out), &second, &first); err != nil || scan != nil {
		t.Fatalf("%v, %v: %q", err, scan, out)
	}
	if second > 20 || first > 20 { // who looked every 50 microseconds would be at thousands
		t.Errorf("waiting for 0.3 seconds, the second core went to sleep %d times, the first %d times", second, first)
	}
}
