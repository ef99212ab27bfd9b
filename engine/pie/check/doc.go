// Package check holds the kernels of the vector unit to their twins in plain C: it makes a case twice, runs the assembly in
// the interpreter and the twin on this machine, and compares every byte of every buffer and the returned word. And it holds
// the cases to their purpose: it puts faults into the kernels, one at a time, and asks that a case finds each.
//
//	r, err := check.Run(ctx, kernel, shape, pie.Random, seed)
package check
