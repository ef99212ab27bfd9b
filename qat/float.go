package qat

import "math"

// roundMagic moves a float of magnitude below 2^22 to where the unit in the last place is 1.
const roundMagic = 0x1.8p23

// RNE rounds t, with |t| < 2^22, to the nearest integer, ties to even.
func RNE(t float32) float32 {
	u := t + roundMagic
	return u - roundMagic
}

// Sum8 adds up v in the order that eight vector lanes give: lane j adds v[i] for i mod 8 = j, and the lanes are
// joined as ((p0+p4)+(p2+p6)) + ((p1+p5)+(p3+p7)).
func Sum8(v []float32) float32 {
	var p [8]float32
	for i, x := range v {
		p[i&7] += x
	}
	return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]))
}

// expCoefficients are those of the polynomial of [Exp], after the leading one.
var expCoefficients = [...]float32{0x1.6c16c2p-10, 0x1.111112p-7, 0x1.555556p-5, 0x1.555556p-3, 0.5, 1, 1}

// Exp is e to the power x by a fixed sequence of float32 operations; x is held between -86 and 86.
// The relative error is below 2^-22. A NaN gives Exp(-86).
func Exp(x float32) float32 {
	if !(x > -86) {
		x = -86
	}
	if !(x < 86) {
		x = 86
	}
	n := RNE(float32(x * 0x1.715476p+0))
	hi := x - float32(n*0x1.63p-1)
	r := hi - float32(n*-0x1.bd0106p-13)
	p := float32(0x1.a01a02p-13)
	for _, c := range expCoefficients {
		p = float32(p*r) + c
	}
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}

// Sigmoid is 1 / (1 + exp(-x)).
func Sigmoid(x float32) float32 { return 1 / (1 + Exp(-x)) }

// SiLU is x * sigmoid(x).
func SiLU(x float32) float32 { return x * Sigmoid(x) }

// GELU is the tanh form of the Gaussian error linear unit, written as x * sigmoid(z).
func GELU(x float32) float32 {
	sq := float32(x * x)
	z := float32(x*0x1.988454p+0) * (1 + float32(sq*0x1.6e4e26p-5))
	return x * Sigmoid(z)
}
