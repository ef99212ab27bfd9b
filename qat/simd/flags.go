package simd

// #cgo CFLAGS: -std=c11 -O3 -Wall -Wextra -Werror
import "C"
