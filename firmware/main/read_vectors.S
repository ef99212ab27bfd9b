// void port_read_vectors(const void *at, uint32_t blocks)
//
// Loads blocks of 64 bytes, from a multiple of 16 on, through the vector unit, and does nothing with them: as fast as the
// memory gives them. For the benchmark.

	.section .iram1, "ax"
	.global	port_read_vectors
	.type	port_read_vectors, @function
	.align	4
port_read_vectors:
	entry	a1, 32
	loopnez	a3, 1f
	ee.vld.128.ip	q0, a2, 16
	ee.vld.128.ip	q1, a2, 16
	ee.vld.128.ip	q2, a2, 16
	ee.vld.128.ip	q3, a2, 16
1:
	retw
	.size	port_read_vectors, . - port_read_vectors
