// Package cycles runs cases of kernels in the interpreter and says what they cost. It needs no C.
//
//	n, err := cycles.Of("chiplm_pie_rows4", pie.Shape{Rows: 128, Columns: 128, Bits: 4, Group: 64})
//
// Caveat: cycles are those of package sim's model, for data in internal memory; and of one case, with random values. Few
// kernels take another time with other values of the same shape.
package cycles
