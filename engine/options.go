package engine

// #include "chiplm.h"
// #include "host_team.h"
import "C"

import (
	"fmt"

	"github.com/chiplm/chiplm/qat/simd"
)

// DefaultBatch is the number of positions that go through a matrix together when Options.Batch is 0.
const DefaultBatch = 32

// MaxBatch is the largest Options.Batch.
const MaxBatch = 1024

// MaxThreads is the largest Options.Threads.
const MaxThreads = int(C.CHIPLM_MAX_MEMBERS)

// SparseMost is the number of positions up to which a block reads only the neurons that it needs.
const SparseMost = int(C.CHIPLM_SPARSE_MOST)

// Path is a set of instructions. Every path computes the same bits.
type Path int

// The paths. [PathDefault] is the one that the environment variable CHIPLM_SIMD names, or the fastest of this processor.
const (
	PathDefault Path = C.CHIPLM_PATH_BEST
	PathPlain   Path = C.CHIPLM_PATH_PLAIN
	PathAVX2    Path = C.CHIPLM_PATH_AVX2
	PathAVX512  Path = C.CHIPLM_PATH_AVX512
	PathNEON    Path = C.CHIPLM_PATH_NEON
	// PathPIE is for the vector unit of the ESP32-S3. A host imitates it in plain C, for tests.
	PathPIE Path = C.CHIPLM_PATH_PIE
)

// Paths are those that this processor has: plain C, PIE imitated, then its own, the best last.
func Paths() []Path {
	var paths []Path
	for _, p := range []Path{PathPlain, PathPIE, PathAVX2, PathAVX512, PathNEON} {
		if C.chiplm_path_name(C.chiplm_path(p)) != nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// String is the name of a path, such as "plain".
func (p Path) String() string {
	if name := C.chiplm_path_name(C.chiplm_path(p)); name != nil {
		return C.GoString(name)
	}
	return fmt.Sprintf("Path(%d)", int(p))
}

// Resolve is the path that an engine with this option takes: that of the environment for [PathDefault], or the fastest.
func (p Path) Resolve() Path {
	if p != PathDefault {
		return p
	}
	named, ok := map[simd.Path]Path{simd.Plain: PathPlain, simd.AVX2: PathAVX2, simd.AVX512: PathAVX512, simd.NEON: PathNEON}[simd.Current()]
	if !ok {
		return PathDefault
	}
	return named
}

// Options of an engine. None changes a bit of a result.
type Options struct {
	// Batch is how many positions go through a matrix together, 1 to MaxBatch; 0 is DefaultBatch.
	Batch int
	// Path is the set of instructions.
	Path Path
	// Threads share the work of every step, 1 to MaxThreads; 0 is 1. They pay for single sequences on idle cores; many
	// sequences are better served by an engine for each core.
	Threads int
	// Dense reads every neuron of a relu gate. Without it, blocks of up to [SparseMost] positions read only those that a
	// position of the block needs.
	Dense bool
}

// check fills in defaults and refuses what is out of range.
func (opt *Options) check() error {
	if opt.Batch == 0 {
		opt.Batch = DefaultBatch
	}
	if opt.Threads == 0 {
		opt.Threads = 1
	}
	opt.Path = opt.Path.Resolve()
	switch {
	case opt.Batch < 1 || opt.Batch > MaxBatch:
		return fmt.Errorf("engine: batch %d is outside 1..%d: %w", opt.Batch, MaxBatch, ErrArgument)
	case opt.Threads < 1 || opt.Threads > MaxThreads:
		return fmt.Errorf("engine: %d threads are outside 1..%d: %w", opt.Threads, MaxThreads, ErrArgument)
	case opt.Path < PathDefault || opt.Path >= C.CHIPLM_PATH_COUNT, C.chiplm_path_name(C.chiplm_path(opt.Path)) == nil:
		return fmt.Errorf("engine: this processor does not have path %d: %w", int(opt.Path), ErrArgument)
	}
	return nil
}

func (opt *Options) c(team *C.chiplm_team) C.chiplm_options {
	o := C.chiplm_options{batch: C.uint32_t(opt.Batch), path: C.chiplm_path(opt.Path), dense: C.bool(opt.Dense)}
	if team != nil {
		o.team = *team
	}
	return o
}
