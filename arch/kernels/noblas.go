//go:build noblas

package kernels

// #cgo CFLAGS: -DCHIPLM_NO_BLAS
import "C"
