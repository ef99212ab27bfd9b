package engine

// #include "chiplm.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/chiplm/chiplm/data/digits"
)

// The failures of an image or a run, one for each status of the C engine; test for them with errors.Is. The error
// returned adds where it happened and what was found there.
var (
	ErrArgument    = sentinel(C.CHIPLM_ERR_ARGUMENT)     // an argument outside its range
	ErrAlignment   = sentinel(C.CHIPLM_ERR_ALIGNMENT)    // memory that is not aligned
	ErrSize        = sentinel(C.CHIPLM_ERR_SIZE)         // shorter than a header
	ErrMagic       = sentinel(C.CHIPLM_ERR_MAGIC)        // not an image
	ErrVersion     = sentinel(C.CHIPLM_ERR_VERSION)      // an image of another version
	ErrHeaderBytes = sentinel(C.CHIPLM_ERR_HEADER_BYTES) // header length
	ErrFlags       = sentinel(C.CHIPLM_ERR_FLAGS)        // an unknown flag
	ErrFileBytes   = sentinel(C.CHIPLM_ERR_FILE_BYTES)   // the length in the header is not the file's
	ErrFileCRC     = sentinel(C.CHIPLM_ERR_FILE_CRC)     // CRC of the file
	ErrReserved    = sentinel(C.CHIPLM_ERR_RESERVED)     // padding or reserved bytes that are not zero
	ErrSections    = sentinel(C.CHIPLM_ERR_SECTIONS)     // the section table
	ErrSectionCRC  = sentinel(C.CHIPLM_ERR_SECTION_CRC)  // CRC of a section
	ErrModel       = sentinel(C.CHIPLM_ERR_MODEL)        // an impossible size or constant
	ErrTensorName  = sentinel(C.CHIPLM_ERR_TENSOR_NAME)  // another tensor than the sizes imply
	ErrTensorShape = sentinel(C.CHIPLM_ERR_TENSOR_SHAPE) // another shape than the sizes imply
	ErrTensorBits  = sentinel(C.CHIPLM_ERR_TENSOR_BITS)  // bits, group, scale type or tier
	ErrTensorFloat = sentinel(C.CHIPLM_ERR_TENSOR_FLOAT) // a matrix that was not quantised
	ErrTensorRange = sentinel(C.CHIPLM_ERR_TENSOR_RANGE) // a tensor outside DATA, on another, or of wrong length
	ErrTensorCRC   = sentinel(C.CHIPLM_ERR_TENSOR_CRC)   // CRC of a tensor
	ErrCode        = sentinel(C.CHIPLM_ERR_CODE)         // a code that no quantiser writes
	ErrScale       = sentinel(C.CHIPLM_ERR_SCALE)        // a scale that is negative, subnormal or not finite
	ErrFloat       = sentinel(C.CHIPLM_ERR_FLOAT)        // a float weight that is subnormal or not finite
	ErrRope        = sentinel(C.CHIPLM_ERR_ROPE)         // the rotary tables
	ErrTokenizer   = sentinel(C.CHIPLM_ERR_TOKENIZER)    // the tokenizer section
	ErrGolden      = sentinel(C.CHIPLM_ERR_GOLDEN)       // the golden section
	ErrArena       = sentinel(C.CHIPLM_ERR_ARENA)        // arena or cache too small
	ErrID          = sentinel(C.CHIPLM_ERR_ID)           // a token id outside the vocabulary
	ErrContext     = sentinel(C.CHIPLM_ERR_CONTEXT)      // more positions than context_length
	ErrNotFinite   = sentinel(C.CHIPLM_ERR_NOT_FINITE)   // an infinite value, or not a number
	ErrDigest      = sentinel(C.CHIPLM_ERR_DIGEST)       // the golden run gave other bits
	ErrTemperature = sentinel(C.CHIPLM_ERR_TEMPERATURE)  // negative, infinite or not a number
	ErrClusters    = sentinel(C.CHIPLM_ERR_CLUSTERS)     // the clusters of the head: wrong, or missing
	ErrFused       = sentinel(C.CHIPLM_ERR_FUSED)        // the engine was compiled with contraction
	ErrRoom        = sentinel(C.CHIPLM_ERR_ROOM)         // a text has more ids than there is room for

	// ErrClosed is returned by methods of an image or engine after Close.
	ErrClosed = errors.New("the image or engine was closed: open it again")
)

// statusFused is the status of ErrFused, for the tests: test files cannot use cgo.
const statusFused = C.CHIPLM_ERR_FUSED

var sentinels = map[C.chiplm_status]error{}

// sentinel makes the error of a status, with the C engine's own sentence.
func sentinel(status C.chiplm_status) error {
	err := errors.New(C.GoString(C.chiplm_status_text(status)))
	sentinels[status] = err
	return err
}

// failure is the error of a status without a fault; nil for CHIPLM_OK.
func failure(status C.chiplm_status) error {
	if status == C.CHIPLM_OK {
		return nil
	}
	if err, ok := sentinels[status]; ok {
		return err
	}
	return fmt.Errorf("status %d of the C engine: %s", int(status), C.GoString(C.chiplm_status_text(status)))
}

// failureAt is the error of a fault: where, which number was given or stored and which one was computed or is the limit,
// and what to do. In faults of an image, found is what the image stores and wanted what follows from its other bytes.
func failureAt(fault *C.chiplm_fault) error {
	err := failure(fault.status)
	if err == nil {
		return nil
	}
	if place := describe(fault.status, C.GoString(&fault.where[0]), uint64(fault.found), uint64(fault.wanted)); place != "" {
		return fmt.Errorf("%s: %w", place, err)
	}
	return err
}

// describe words where a fault is and its numbers.
func describe(status C.chiplm_status, where string, found, wanted uint64) string {
	switch status {
	case C.CHIPLM_ERR_SIZE:
		return fmt.Sprintf("the file has %d bytes, a header %d", found, wanted)
	case C.CHIPLM_ERR_MAGIC:
		return fmt.Sprintf("it starts with %q, an image with %q", letters(found), letters(wanted))
	case C.CHIPLM_ERR_VERSION, C.CHIPLM_ERR_HEADER_BYTES, C.CHIPLM_ERR_FLAGS:
		return fmt.Sprintf("%s: is %d, this engine knows %d", where, found, wanted)
	case C.CHIPLM_ERR_FILE_BYTES:
		return fmt.Sprintf("the header says %s bytes, the file has %s", digits.Comma(found), digits.Comma(wanted))
	case C.CHIPLM_ERR_FILE_CRC, C.CHIPLM_ERR_SECTION_CRC, C.CHIPLM_ERR_TENSOR_CRC:
		return fmt.Sprintf("%s: the image stores %08x, its bytes give %08x", where, found, wanted)
	case C.CHIPLM_ERR_DIGEST:
		return fmt.Sprintf("%s: this run gives %#x, the image stores %#x", where, found, wanted)
	case C.CHIPLM_ERR_SECTIONS:
		if len(where) == 4 && letters(wanted) == where {
			return fmt.Sprintf("%s: the image has %q in its place", where, letters(found))
		}
	case C.CHIPLM_ERR_MODEL:
		if wanted == 0 { // a constant, given as its bits
			return fmt.Sprintf("%s: the image stores %g", where, math.Float32frombits(uint32(found)))
		}
	case C.CHIPLM_ERR_TENSOR_NAME:
		return fmt.Sprintf("%s: entry %d of the tensor table should have this name", where, found)
	case C.CHIPLM_ERR_CODE, C.CHIPLM_ERR_RESERVED: // where the fault lies is counted in several ways
		return where
	case C.CHIPLM_ERR_SCALE, C.CHIPLM_ERR_FLOAT:
		return fmt.Sprintf("%s: the image stores the bits %#x", where, found)
	case C.CHIPLM_ERR_ROPE, C.CHIPLM_ERR_TOKENIZER, C.CHIPLM_ERR_GOLDEN:
		if wanted == 0 { // the place, or the bits of a logit
			return fmt.Sprintf("%s %d", where, found)
		}
	case C.CHIPLM_ERR_NOT_FINITE:
		return fmt.Sprintf("%s %d", where, found)
	case C.CHIPLM_ERR_ID:
		return fmt.Sprintf("%s %d, the largest is %d", where, int64(found), wanted)
	case C.CHIPLM_ERR_CONTEXT:
		return fmt.Sprintf("%s positions, context_length is %s", digits.Comma(found), digits.Comma(wanted))
	case C.CHIPLM_ERR_ARGUMENT, C.CHIPLM_ERR_ALIGNMENT, C.CHIPLM_ERR_ARENA, C.CHIPLM_ERR_TEMPERATURE:
		if found == 0 && wanted == 0 {
			return where
		}
		return fmt.Sprintf("%s: given %d, needed %d", where, found, wanted)
	}
	if wanted == 0 {
		return fmt.Sprintf("%s: the image stores %s", where, digits.Comma(found))
	}
	return fmt.Sprintf("%s: the image stores %s, the limit or right value is %s", where, digits.Comma(found), digits.Comma(wanted))
}

// letters are the four bytes of a little-endian word.
func letters(word uint64) string {
	return string(binary.LittleEndian.AppendUint32(nil, uint32(word)))
}
