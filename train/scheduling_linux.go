package train

import (
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Policies of the Linux scheduler.
const (
	schedOther = 0
	schedBatch = 3
)

// batchScheduling tells the system that this process computes and nobody waits for its answers: SCHED_BATCH. Go's
// monitor wakes up thousands of times a second while a goroutine stays in C; as an ordinary thread it takes the
// processor from a worker each time. A policy that somebody has chosen stays, and it is no error where there is none.
func batchScheduling() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, task := range tasks { // threads made later have the policy of the one that makes them
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		policy, _, errno := unix.Syscall(unix.SYS_SCHED_GETSCHEDULER, uintptr(tid), 0, 0)
		if errno != 0 || policy != schedOther {
			continue
		}
		priority := int32(0)
		_, _, _ = unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), schedBatch, uintptr(unsafe.Pointer(&priority)))
	}
}
