package sim

import (
	"fmt"
	"math/bits"
)

// What instructions read and write, for timing: an id each. The ids of a registers are their numbers.
const (
	resF     = 16
	resB     = 32
	resQ     = 48
	resAccx  = 56
	resQaccL = 57
	resQaccH = 58
	resSar   = 59
	resSarB  = 60
	resCount = 61
)

// state is a set of the parts of the machine's state that may hold a value or not: a0..a15, f0..f15, the 32 words of
// q0..q7 in the first word; b0..b15, two parts of ACCX, five of each half of QACC, SAR and SAR_BYTE in the second.
type state [2]uint64

const (
	bitAccx  = 16
	bitQaccL = 18
	bitQaccH = 23
	bitSar   = 28
	bitSarB  = 29
)

func (s state) minus(t state) state { return state{s[0] &^ t[0], s[1] &^ t[1]} }

func (s state) with(t state) state { return state{s[0] | t[0], s[1] | t[1]} }

// words is the state of some words of a q register.
func words(q int, mask uint64) state { return state{mask << (32 + 4*q), 0} }

// resource names what a part of the state belongs to.
func (s state) String() string {
	if s[0] != 0 {
		i := bits.TrailingZeros64(s[0])
		switch {
		case i < 16:
			return fmt.Sprintf("a%d", i)
		case i < 32:
			return fmt.Sprintf("f%d", i-16)
		}
		q := (i - 32) / 4
		if missing := s[0] >> (32 + 4*q) & 15; missing != 15 {
			return fmt.Sprintf("q%d (word %d)", q, (i-32)%4)
		}
		return fmt.Sprintf("q%d", q)
	}
	switch i := bits.TrailingZeros64(s[1]); {
	case i < 16:
		return fmt.Sprintf("b%d", i)
	case i < bitQaccL:
		return "ACCX"
	case i < bitQaccH:
		return fmt.Sprintf("QACC_L (word %d)", i-bitQaccL)
	case i < bitSar:
		return fmt.Sprintf("QACC_H (word %d)", i-bitQaccH)
	case i == bitSar:
		return "SAR"
	}
	return "SAR_BYTE"
}

// implicit are resources that instructions use without naming them.
var implicit = map[string]struct {
	res   int
	state state
}{
	"accx":   {resAccx, state{0, 3 << bitAccx}},
	"accx0":  {resAccx, state{0, 1 << bitAccx}},
	"accx1":  {resAccx, state{0, 2 << bitAccx}},
	"qaccl":  {resQaccL, state{0, 31 << bitQaccL}},
	"qacch":  {resQaccH, state{0, 31 << bitQaccH}},
	"qaccl.": {resQaccL, state{0, 15 << bitQaccL}},
	"qacch.": {resQaccH, state{0, 15 << bitQaccH}},
	"qaccl0": {resQaccL, state{0, 1 << bitQaccL}},
	"qaccl1": {resQaccL, state{0, 2 << bitQaccL}},
	"qaccl2": {resQaccL, state{0, 4 << bitQaccL}},
	"qaccl3": {resQaccL, state{0, 8 << bitQaccL}},
	"qaccl4": {resQaccL, state{0, 16 << bitQaccL}},
	"qacch0": {resQaccH, state{0, 1 << bitQaccH}},
	"qacch1": {resQaccH, state{0, 2 << bitQaccH}},
	"qacch2": {resQaccH, state{0, 4 << bitQaccH}},
	"qacch3": {resQaccH, state{0, 8 << bitQaccH}},
	"qacch4": {resQaccH, state{0, 16 << bitQaccH}},
	"sar":    {resSar, state{0, 1 << bitSar}},
	"sarb":   {resSarB, state{0, 1 << bitSarB}},
}
