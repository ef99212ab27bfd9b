package train

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// freeMemory is what this process may still take: of the machine, of its control groups and of its address space.
func freeMemory() memory {
	free := systemMemory(os.DirFS("/"))
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) != nil || limit.Cur >= 1<<60 {
		return free
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return free
	}
	pages, _, _ := strings.Cut(string(text), " ")
	if n, err := strconv.ParseFloat(pages, 64); err == nil {
		free.least(float64(limit.Cur)-n*float64(os.Getpagesize()), "by the limit of the address space, ulimit -v")
	}
	return free
}
