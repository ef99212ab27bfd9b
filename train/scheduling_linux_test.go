package train

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBatchScheduling: every thread of the process is scheduled as batch work, and those made later too. In a process
// of its own, since the policy stays.
func TestBatchScheduling(t *testing.T) {
	if os.Getenv("CHIPLM_TEST_SCHEDULING") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestBatchScheduling$", "-test.v")
		cmd.Env = append(os.Environ(), "CHIPLM_TEST_SCHEDULING=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	policy, _, errno := unix.Syscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	if errno != 0 || policy != schedOther {
		t.Skip("the process has another policy than the usual one, or none")
	}
	batchScheduling()
	done := make(chan uintptr)
	for range 8 {
		go func() {
			runtime.LockOSThread() // each on a thread of its own
			p, _, _ := unix.Syscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
			done <- p
		}()
	}
	for range 8 {
		if p := <-done; p != schedBatch {
			t.Errorf("a thread has policy %d, want %d", p, schedBatch)
		}
	}
}
