//go:build !linux && !darwin

package bench

// cpuModel is not known here.
func cpuModel() string { return "" }

// residentBytes is not known here.
func residentBytes() int64 { return 0 }
