//go:build !linux

package train

// freeMemory is not known here.
func freeMemory() memory { return memory{} }
