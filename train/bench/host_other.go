//go:build !linux && !darwin

package bench

// CPUModel is not known here.
func CPUModel() string { return "" }

// residentBytes is not known here.
func residentBytes() int64 { return 0 }
