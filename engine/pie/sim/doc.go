// Package sim executes the engine's ESP32-S3 kernels without a board: it reads GNU assembly, refuses what the chip's
// assembler would, runs it on buffers of the caller's, traps what no kernel may do, and counts cycles.
//
//	p, err := sim.Parse("rows.S", text)
//	m := sim.New()
//	x := m.Map("x", codes, pie.Read)
//	r, err := m.Call(ctx, p, "chiplm_pie_rows4", x, 128)
package sim
