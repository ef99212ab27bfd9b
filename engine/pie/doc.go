// Package pie holds the engine's kernels for the vector unit of the ESP32-S3 (PIE), as GNU assembly that the firmware
// builds, and describes each of them: what it takes, on which shapes it works, and how to make a case for it.
//
// pie.h declares the assembly functions. The engine calls them through engine/pie.c; for each there is a twin in plain C
// that gives the same bits. Package sim executes the .S files without a board, package check holds them against the
// twins, and the cost model asks [Kernel] for cycles.
//
// Caveat: no board is part of this package. Cycles are those of the model in package sim, for data in internal memory.
package pie
