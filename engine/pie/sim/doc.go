// Package sim executes the engine's ESP32-S3 kernels without a board: it reads GNU assembly, refuses what the chip's
// assembler would, runs it on buffers of the caller's, traps what no kernel may do, and counts cycles.
//
//	p, err := sim.ParseFile(pie.Files, "rows4.S")
//	m := sim.New()
//	x := m.Map("x", codes, pie.Read)
//	r, err := m.Call(ctx, p, "chiplm_pie_rows4", x, 128)
//
// docs/pie.md says what is read, what is refused and trapped, and what the model of cycles rests on. A [Program] may be
// run by many machines at once; a [Machine] runs one call at a time.
//
// Caveats: cycles are for code and data in internal memory. What results are when operands are no numbers is assumed.
package sim
