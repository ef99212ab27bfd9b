package sim

// qacc holds QACC_L and QACC_H as the lanes of the instructions that use them: 16 of 20 bits or 8 of 40, the first half
// of them in QACC_L. The bits are the same whichever it is; they are turned when the other kind of lanes is wanted.
type qacc struct {
	wide  bool
	lanes [16]uint64 // the bits of a lane, not extended
}

const (
	mask20 = 1<<20 - 1
	mask40 = 1<<40 - 1
)

// half gives 160 bits as five words.
func (q *qacc) half(high int) [5]uint32 {
	var w [5]uint32
	n, width := 8, 20
	if q.wide {
		n, width = 4, 40
	}
	for i := range n {
		at := i * width
		v := q.lanes[high*n+i]
		for k := at / 32; k <= (at+width-1)/32; k++ {
			if shift := at - 32*k; shift >= 0 {
				w[k] |= uint32(v << shift)
			} else {
				w[k] |= uint32(v >> -shift)
			}
		}
	}
	return w
}

// setHalf stores 160 bits.
func (q *qacc) setHalf(high int, w [5]uint32) {
	n, width, mask := 8, 20, uint64(mask20)
	if q.wide {
		n, width, mask = 4, 40, mask40
	}
	for i := range n {
		at := i * width
		k, shift := at/32, at%32
		v := uint64(w[k]) >> shift
		if k+1 < 5 {
			v |= uint64(w[k+1]) << (32 - shift)
		}
		q.lanes[high*n+i] = v & mask
	}
}

// use turns the bits into lanes of a kind.
func (q *qacc) use(wide bool) {
	if q.wide == wide {
		return
	}
	low, high := q.half(0), q.half(1)
	q.wide = wide
	q.setHalf(0, low)
	q.setHalf(1, high)
}

func signed20(v uint64) int64 { return int64(v<<44) >> 44 }

func signed40(v uint64) int64 { return int64(v<<24) >> 24 }

func clamp(v, lo, hi int64) int64 { return max(lo, min(hi, v)) }

// add8 adds to lane i of 20 bits, and saturates.
func (q *qacc) add8(i int, v int64) {
	q.lanes[i] = uint64(clamp(signed20(q.lanes[i])+v, -1<<19, 1<<19-1)) & mask20
}

func (q *qacc) add16(i int, v int64) {
	q.lanes[i] = uint64(clamp(signed40(q.lanes[i])+v, -1<<39, 1<<39-1)) & mask40
}

func (q *qacc) addUnsigned8(i int, v uint64) { q.lanes[i] = min(q.lanes[i]+v, mask20) }

func (q *qacc) addUnsigned16(i int, v uint64) { q.lanes[i] = min(q.lanes[i]+v, mask40) }
