package engine

// #include <stdlib.h>
// #include "host_twins.h"
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/chiplm/chiplm/engine/pie"
)

// PieTwin calls the twin in plain C of a kernel of the vector unit, on the buffers of the arguments themselves, and
// returns the word that it returns, 0 where it returns none. It fails when there is no such twin, or when the twin
// takes another number of arguments.
func PieTwin(symbol string, args []pie.Argument) (uint32, error) {
	name := C.CString(symbol)
	defer C.free(unsafe.Pointer(name))
	var pins runtime.Pinner
	defer pins.Unpin()
	arguments := make([]C.chiplm_twin_argument, len(args)+1)
	for i, a := range args {
		if a.Buffer == nil {
			arguments[i].word = C.uint32_t(a.Word)
		} else if len(a.Buffer) > 0 {
			pins.Pin(&a.Buffer[0])
			arguments[i].at = unsafe.Pointer(&a.Buffer[0])
		}
	}
	var returned C.uint32_t
	takes := C.chiplm_call_twin(name, &arguments[0], C.int(len(args)), &returned)
	switch {
	case takes < 0:
		return 0, fmt.Errorf("%s: no twin in plain C has this name; add it to engine/host_twins.c", symbol)
	case int(takes) != len(args):
		return 0, fmt.Errorf("%s: its twin takes %d arguments, not %d", symbol, takes, len(args))
	}
	return uint32(returned), nil
}
