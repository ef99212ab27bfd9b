//go:build !noblas

package kernels

// #cgo !darwin LDFLAGS: -lopenblas
// #cgo darwin LDFLAGS: -framework Accelerate
import "C"
