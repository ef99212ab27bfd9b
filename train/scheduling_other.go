//go:build !linux

package train

// batchScheduling is for Linux only.
func batchScheduling() {}
