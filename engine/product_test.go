//go:build linux || darwin

package engine

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
)

// guarded is n bytes at a multiple of align, before a page that must not be touched: a step past the end ends the test. If n is
// no multiple of align, the page follows a little later.
func guarded(tb testing.TB, n, align int) []byte {
	tb.Helper()
	page := syscall.Getpagesize()
	size := (n+page-1)/page*page + page
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := syscall.Munmap(b); err != nil {
			tb.Error(err)
		}
	})
	if err := syscall.Mprotect(b[size-page:], syscall.PROT_NONE); err != nil {
		tb.Fatal(err)
	}
	at := (size - page - n) / align * align
	return b[at : at+n : at+n]
}

func guardedCopy(tb testing.TB, from []byte) []byte {
	tb.Helper()
	to := guarded(tb, len(from), 1)
	copy(to, from)
	return to
}

func words(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = le.AppendUint32(b, x)
	}
	return b
}

// codesOf draws codes of the given bits: small ones, or only the largest and smallest, whose sums are the largest that
// there are.
func codesOf(rng *rand.Rand, bits, n int, extreme bool) []int8 {
	most := 1<<(bits-1) - 1
	codes := make([]int8, n)
	sign := 1 - 2*rng.IntN(2)
	for i := range codes {
		codes[i] = int8(rng.IntN(2*most+1) - most)
		if extreme {
			codes[i] = int8(most * sign)
		}
	}
	return codes
}

// randomProduct draws a matrix, inputs and the rows to compute. batch inputs are there, of which some are taken.
func randomProduct(tb testing.TB, rng *rand.Rand, transposed bool) (c *productCall, batch int) {
	tb.Helper()
	pick := func(v ...int) int { return v[rng.IntN(len(v))] }
	c = &productCall{bits: pick(2, 4, 8), group: pick(0, 32, 64, 128), half: rng.IntN(3) == 0,
		columns: 1 + rng.IntN(pick(8, 70, 400)), rows: 1 + rng.IntN(pick(20, 90, 300))}
	extreme := rng.IntN(3) == 0
	perBlock := 128 / c.bits
	storedRows, storedColumns := c.rows, c.columns
	if transposed {
		c.block = c.rows
		c.rows *= 1 + rng.IntN(3)
		storedRows, storedColumns = c.rows/c.block*c.columns, c.block
	}
	c.stride = (storedColumns + perBlock - 1) / perBlock * 16
	codes := make([]byte, storedRows*c.stride)
	for r := range storedRows {
		for i, code := range codesOf(rng, c.bits, storedColumns, extreme) {
			codes[r*c.stride+i/perBlock*16+i%16] |= byte(code) & byte(1<<c.bits-1) << (i % perBlock / 16 * c.bits)
		}
	}
	c.codes = guardedCopy(tb, codes)
	var scales []byte
	for range c.rows * c.groups() {
		if c.half {
			scales = le.AppendUint16(scales, uint16(rng.IntN(0x7c00))) // subnormal ones too
		} else {
			scales = append(scales, floatBytes(float32(rng.IntN(20))*rng.Float32())...) // zero, too
		}
	}
	c.scales = guardedCopy(tb, scales)

	batch = 1 + rng.IntN(pick(3, 8, 70))
	c.xStride = (c.columns+63)/64*64 + 64*rng.IntN(2)
	x := make([]byte, batch*c.xStride)
	c.sums, c.xScales = guarded(tb, len(x)/32*4, 4), guarded(tb, 4*batch, 4)
	which := make([]uint32, 0, batch)
	live := rng.Perm(c.columns)[:rng.IntN(c.columns+1)]
	listed := rng.IntN(2) == 0
	for b := range batch {
		codes := codesOf(rng, 8, c.columns, extreme)
		if transposed && listed {
			some := make([]int8, c.columns)
			for _, i := range live {
				some[i] = codes[i]
			}
			codes = some
		}
		for i, code := range codes {
			x[b*c.xStride+i] = byte(code)
			sum := c.sums[(b*c.xStride/32+i/32)*4:]
			le.PutUint32(sum, le.Uint32(sum)+uint32(int32(code)))
		}
		copy(c.xScales[4*b:], floatBytes(rng.Float32()))
		if len(which) == 0 || rng.IntN(6) > 0 {
			which = append(which, uint32(b))
		}
	}
	c.x, c.which = guardedCopy(tb, x), guardedCopy(tb, words(which...))

	var list []uint32
	if transposed {
		c.first = rng.IntN((c.block+63)/64) * 64
		c.count = 1 + rng.IntN(c.block-c.first)
		c.first += rng.IntN(c.rows/c.block) * c.block
		slices.Sort(live)
		for _, i := range live {
			list = append(list, uint32(i))
		}
	} else {
		c.first = rng.IntN(c.rows)
		c.count = 1 + rng.IntN(c.rows-c.first)
		share := 1 + rng.IntN(3)
		for i := range c.count {
			if rng.IntN(share) == 0 {
				list = append(list, uint32(i))
			}
		}
	}
	if listed {
		c.list = guardedCopy(tb, words(list...))
	}
	c.ldy = c.count + rng.IntN(9)
	return c, batch
}

// TestProductsAreTheSameOnEveryPath compares every path's products with those of plain C, bit for bit, over all formats,
// and wants nothing read or written but what belongs to it.
func TestProductsAreTheSameOnEveryPath(t *testing.T) {
	for _, transposed := range []bool{false, true} {
		for seed := range uint64(1500) {
			t.Run(fmt.Sprintf("transposed %v, seed %d", transposed, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 7))
				c, batch := randomProduct(t, rng, transposed)
				var want []byte
				for _, path := range Paths() {
					y := guarded(t, 4*((batch-1)*c.ldy+c.count), 4)
					for i := range y {
						y[i] = 0xee
					}
					scratch := guarded(t, c.scratchBytes(path, batch), 64)
					for i := range scratch {
						scratch[i] = byte(rng.Uint32())
					}
					c.run(path, y, scratch)
					if want == nil {
						want = y
						continue
					}
					if bytes.Equal(y, want) {
						continue
					}
					for i := 0; i < len(y); i += 4 {
						got, want := le.Uint32(y[i:]), le.Uint32(want[i:])
						if got != want {
							t.Fatalf("%v: %d x %d, %d bits, group %d, f16 %v, block %d, first %d, %d rows of %d listed, %d of %d inputs: input %d, row %d: %v (%#x), plain has %v (%#x)",
								path, c.rows, c.columns, c.bits, c.group, c.half, c.block, c.first, c.count, len(c.list)/4, len(c.which)/4, batch,
								i/4/c.ldy, i/4%c.ldy, math.Float32frombits(got), got, math.Float32frombits(want), want)
						}
					}
				}
			})
		}
	}
}

// BenchmarkProduct multiplies shapes of combo by one input and by a block of them.
func BenchmarkProduct(b *testing.B) {
	for _, path := range Paths() {
		for _, s := range []struct {
			what                string
			rows, columns, bits int
			transposed, chosen  bool
			inputs              int
		}{
			{"head", 4096, 128, 4, false, false, 1}, {"head", 4096, 128, 4, false, false, 32}, {"head", 4096, 128, 8, false, false, 1},
			{"head", 4096, 128, 8, false, false, 32}, {"qkv", 384, 128, 4, false, false, 1}, {"down", 128, 320, 4, true, false, 32},
			{"a fifth of down", 128, 320, 4, true, true, 1}, {"a fifth of up", 320, 128, 4, false, true, 1},
		} {
			b.Run(fmt.Sprintf("%v/%s of %d bits, %d inputs", path, s.what, s.bits, s.inputs), func(b *testing.B) {
				c := &productCall{rows: s.rows, columns: s.columns, bits: s.bits, group: 64, count: s.rows, ldy: s.rows, xStride: s.columns,
					x: make([]byte, s.inputs*s.columns), sums: make([]byte, s.inputs*s.columns/8), xScales: make([]byte, 4*s.inputs)}
				stored, across := s.rows, s.columns
				if s.transposed {
					c.block, stored, across = s.rows, s.columns, s.rows
				}
				c.stride = across * s.bits / 8
				c.codes, c.scales = make([]byte, stored*c.stride), make([]byte, s.rows*c.groups()*4)
				macs := s.rows * s.columns * s.inputs
				if s.chosen {
					for i := range stored / 5 {
						c.list = append(c.list, words(uint32(5*i))...)
					}
					macs /= 5
				}
				for i := range s.inputs {
					c.which = append(c.which, words(uint32(i))...)
				}
				y, scratch := make([]byte, 4*s.rows*s.inputs), guarded(b, c.scratchBytes(path, s.inputs), 64)
				for b.Loop() {
					c.run(path, y, scratch)
				}
				b.ReportMetric(float64(macs)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
			})
		}
	}
}
