//go:build noblas

package simd

// #cgo CFLAGS: -DCHIPLM_NO_BLAS
import "C"
