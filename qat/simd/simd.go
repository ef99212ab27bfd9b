// Package simd names the instruction sets for which the C loops of training are compiled, and finds those that this
// processor has. A package with such loops compiles one body several times (see simd.h) and calls the copy that fits.
//
// All copies compute the same bits: sums run in a stated order, and only matrix products of floats use fused
// multiply-add, one product after the other. The one exception is [Library], whose order of summation is its own.
package simd

// #include "detect.h"
import "C"

import (
	_ "embed" // for Header
	"fmt"
	"os"
	"strings"
)

// Header is the text of simd.h. Packages that include it from their C files import this package: since the header is
// embedded here, the go command sees its changes and rebuilds them.
//
//go:embed simd.h
var Header string

// Path is an instruction set that loops are compiled for.
type Path int32

// The paths. [Plain] is C as the compiler takes it, the twin that every other path is tested against. [Library] is
// Plain with the matrix products of a BLAS library, for processors that have no path of their own and for macOS, whose
// library uses units that no compiler reaches.
const (
	Plain Path = iota
	Library
	AVX2   // with FMA
	AVX512 // F, BW, DQ, VL and VNNI
	NEON   // every arm64 processor
)

var names = [...]string{"plain", "library", "avx2", "avx512", "neon"}

// Variable is the environment variable that chooses a path by name.
const Variable = "CHIPLM_SIMD"

// String is the name of the path.
func (p Path) String() string {
	if p < 0 || int(p) >= len(names) {
		return fmt.Sprintf("Path(%d)", int32(p))
	}
	return names[p]
}

// Paths are those that this processor and this build can run, the best last.
func Paths() []Path {
	paths := []Path{Plain}
	if C.simd_has_library() != 0 {
		paths = append(paths, Library)
	}
	for _, p := range []Path{AVX2, AVX512, NEON} {
		if C.simd_has(C.int(p)) != 0 {
			paths = append(paths, p)
		}
	}
	if C.simd_prefers_library() != 0 {
		paths = append(paths[:1], append(paths[2:], Library)...)
	}
	return paths
}

// Best is the fastest path of this processor.
func Best() Path {
	p := Paths()
	return p[len(p)-1]
}

// Chosen is the path that the environment variable names, or the best. It fails when the variable names no path, or one
// that this processor or build lacks; the path is the best one then.
func Chosen() (Path, error) {
	name := os.Getenv(Variable)
	if name == "" {
		return Best(), nil
	}
	var here []string
	for _, p := range Paths() {
		if p.String() == name {
			return p, nil
		}
		here = append(here, p.String())
	}
	return Best(), fmt.Errorf("the environment variable %s is %q; on this machine it may be one of %s, or unset", Variable,
		name, strings.Join(here, ", "))
}

var (
	current, _ = Chosen() // the command tells of a name that is none
	followers  []func(Path)
)

// Follow calls use with the path in use, now and whenever it changes. Packages with compiled loops call it from init.
func Follow(use func(Path)) {
	followers = append(followers, use)
	use(current)
}

// Use has all loops run on a path, which must be one of [Paths], and returns the one used before. It is for tests and
// benchmarks that compare paths: not while loops run.
func Use(p Path) (before Path) {
	before, current = current, p
	for _, use := range followers {
		use(p)
	}
	return before
}

// Current is the path in use.
func Current() Path { return current }
