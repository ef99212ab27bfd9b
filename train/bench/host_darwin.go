package bench

import "golang.org/x/sys/unix"

// CPUModel is the name of the processor, or "" where it is not known.
func CPUModel() string {
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}

// residentBytes is not known here.
func residentBytes() int64 { return 0 }
