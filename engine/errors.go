package engine

// #include "chiplm.h"
import "C"

import (
	"errors"
	"fmt"
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

	// ErrClosed is returned by methods of an image or engine after Close.
	ErrClosed = errors.New("the image or engine was closed: open it again")
)

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

// failureAt is the error of a fault: where, what was found, what was wanted, and what to do.
func failureAt(fault *C.chiplm_fault) error {
	err := failure(fault.status)
	if err == nil {
		return nil
	}
	where := C.GoString(&fault.where[0])
	found, wanted := uint64(fault.found), uint64(fault.wanted)
	switch fault.status {
	case C.CHIPLM_ERR_MAGIC, C.CHIPLM_ERR_FILE_CRC, C.CHIPLM_ERR_SECTION_CRC, C.CHIPLM_ERR_TENSOR_CRC,
		C.CHIPLM_ERR_DIGEST:
		return fmt.Errorf("%s: found %#x, want %#x: %w", where, found, wanted, err)
	case C.CHIPLM_ERR_CODE, C.CHIPLM_ERR_SCALE, C.CHIPLM_ERR_FLOAT:
		return fmt.Errorf("%s: found %#x: %w", where, found, err)
	case C.CHIPLM_ERR_NOT_FINITE:
		return fmt.Errorf("%s %d: %w", where, found, err)
	case C.CHIPLM_ERR_ID:
		return fmt.Errorf("%s %d, the largest is %d: %w", where, int64(found), wanted, err)
	case C.CHIPLM_ERR_CONTEXT:
		return fmt.Errorf("%d positions, context_length is %d: %w", found, wanted, err)
	}
	if found == 0 && wanted == 0 {
		return fmt.Errorf("%s: %w", where, err)
	}
	return fmt.Errorf("%s: found %d, limit or expected value %d: %w", where, found, wanted, err)
}
