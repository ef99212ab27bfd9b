package engine

// #include <stdlib.h>
// #include "chiplm.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// encoder is an image with an index of its merges, made when the first text is encoded.
type encoder struct {
	once  sync.Once
	image C.chiplm_image
	err   error
}

// index makes the index, which lives as long as im.
func (im *Image) index() error {
	e := &im.encoder
	e.once.Do(func() {
		e.image = im.c
		n := C.chiplm_encode_index_bytes(&e.image)
		p := alloc(int(n))
		if p == nil {
			e.err = fmt.Errorf("no memory for %d bytes", uint64(n))
			return
		}
		var fault C.chiplm_fault
		if C.chiplm_encode_index(&e.image, p, n, &fault) != C.CHIPLM_OK {
			C.free(p)
			e.err = failureAt(&fault)
			return
		}
		runtime.AddCleanup(im, func(p unsafe.Pointer) { C.free(p) }, p)
	})
	return e.err
}

// Encode returns the ids of a text, without end-of-text. The text is any bytes, and the tokens of the ids hold the same
// bytes. It is what a board does; package bpe gives the same ids, and sooner when there is much to encode. Errors:
// ErrTokenizer (an image whose tokenizer knows not every byte, or contradicts itself), ErrClosed, or no memory.
func (im *Image) Encode(text []byte) (ids []int32, err error) {
	if err := im.mem.acquire(); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	defer func() { err = joinErrors(err, im.mem.drop()) }()
	defer runtime.KeepAlive(im)
	if err := im.index(); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	n := C.chiplm_encode_scratch(&im.encoder.image, C.size_t(len(text)))
	scratch := alloc(int(n))
	if n == 0 || scratch == nil {
		return nil, fmt.Errorf("encode: no memory for a text of %d bytes: cut it into shorter ones", len(text))
	}
	defer C.free(scratch)
	ids = make([]int32, len(text)) // at most one a byte
	var used C.size_t
	at := unsafe.Pointer(unsafe.SliceData(text))
	status := C.chiplm_encode(&im.encoder.image, at, C.size_t(len(text)), idsAt(ids), C.size_t(len(ids)), scratch, n, &used)
	if err := failure(status); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return ids[:used], nil
}
