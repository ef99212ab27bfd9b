package engine

// #include "chiplm.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Reads is what an engine has read, counted where it is read; a block of positions that goes through the weights together
// reads them once. Bytes are those of codes and scales as they are stored, padding of rows included.
type Reads struct {
	Positions int64   `json:"positions"` // fed
	Blocks    int64   `json:"blocks"`    // in which they went through the layers
	Logits    int64   `json:"logits"`    // positions whose logits were all computed
	Rope      int64   `json:"rope"`      // bytes of rotary tables
	Cache     int64   `json:"cache"`     // bytes of keys and values, with their scales
	Tensors   []int64 `json:"tensors"`   // bytes of each tensor, in the order of the table

	// Neurons of each layer whose gate was open, and those among them that were not 0 once quantised, over all positions.
	// They are counted with a relu gate alone.
	Open []int64 `json:"open"`
	Used []int64 `json:"used"`

	Searches     int64    `json:"searches"`      // positions whose best tokens were searched for
	SearchedRows int64    `json:"searched_rows"` // of the head that these searches read in full
	BlocksRead   [2]int64 `json:"blocks_read"`   // of the bounds of rows, at both levels

	// Rows of up, and columns of down, that each layer read.
	UpRows      []int64 `json:"up_rows"`
	DownColumns []int64 `json:"down_columns"`
}

// Total is the sum of all bytes.
func (r *Reads) Total() int64 {
	sum := r.Rope + r.Cache
	for _, b := range r.Tensors {
		sum += b
	}
	return sum
}

// Add adds what another engine of the same image has read.
func (r *Reads) Add(other *Reads) {
	r.Positions += other.Positions
	r.Blocks += other.Blocks
	r.Logits += other.Logits
	r.Rope += other.Rope
	r.Cache += other.Cache
	r.Searches += other.Searches
	r.SearchedRows += other.SearchedRows
	for i, n := range other.BlocksRead {
		r.BlocksRead[i] += n
	}
	for _, list := range []struct {
		to   *[]int64
		from []int64
	}{{&r.Tensors, other.Tensors}, {&r.Open, other.Open}, {&r.Used, other.Used}, {&r.UpRows, other.UpRows}, {&r.DownColumns, other.DownColumns}} {
		if *list.to == nil {
			*list.to = make([]int64, len(list.from))
		}
		for i, n := range list.from {
			(*list.to)[i] += n
		}
	}
}

// Reads returns what was read since the start or the last ClearReads. Errors: ErrClosed.
func (e *Engine) Reads() (*Reads, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lm == nil {
		return nil, fmt.Errorf("engine: %w", ErrClosed)
	}
	r := C.chiplm_reads_of(e.lm)
	list := func(p *C.uint64_t, n C.uint32_t) []int64 {
		return append([]int64{}, unsafe.Slice((*int64)(unsafe.Pointer(p)), int(n))...)
	}
	m := &e.image.c.model
	return &Reads{
		Positions: int64(r.positions), Blocks: int64(r.blocks), Logits: int64(r.logits), Rope: int64(r.rope), Cache: int64(r.cache),
		Searches: int64(r.searches), SearchedRows: int64(r.searched_rows),
		BlocksRead: [2]int64{int64(r.blocks_read[0]), int64(r.blocks_read[1])},
		Tensors:    list(r.tensors, m.n_tensors), Open: list(r.open, m.n_layers), Used: list(r.used, m.n_layers),
		UpRows: list(r.up_rows, m.n_layers), DownColumns: list(r.down_columns, m.n_layers),
	}, nil
}

// ClearReads starts counting anew.
func (e *Engine) ClearReads() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lm != nil {
		C.chiplm_clear_reads(e.lm)
	}
}
