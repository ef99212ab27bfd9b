package clusters

// Moment is the second moment of vectors: the mean of x x'.
type Moment struct {
	D   int
	n   int
	sum []float64 // D*D, the lower triangle
}

// NewMoment makes an empty moment of vectors of d values.
func NewMoment(d int) *Moment { return &Moment{D: d, sum: make([]float64, d*d)} }

// Add counts a vector of D values, which are finite. The order of calls may change the last bits.
func (m *Moment) Add(x []float32) {
	m.n++
	for i, a := range x[:m.D] {
		row := m.sum[i*m.D:]
		for j, b := range x[:i+1] {
			row[j] += float64(float64(a) * float64(b))
		}
	}
}

// regular is the moment of hidden states, of trace d, with a little of the unit matrix added, so that no direction is
// taken to be empty: a model may meet text unlike that which was measured. A nil or empty moment gives the unit matrix.
func regular(m *Moment, d int) []float64 {
	out := make([]float64, d*d)
	var trace float64
	if m != nil {
		for i := range d {
			trace += m.sum[i*d+i]
		}
	}
	if trace == 0 {
		trace = 1
	} else {
		for i := range d {
			for j := range i + 1 {
				x := m.sum[i*d+j] / trace * float64(d)
				out[i*d+j], out[j*d+i] = x, x
			}
		}
	}
	const share = 1e-4
	for i := range d {
		out[i*d+i] += share
	}
	if m == nil || m.n == 0 {
		for i := range d {
			out[i*d+i] = 1
		}
	}
	return out
}

// turnedMoment is the mean of z_j^2 for z = turn x.
func turnedMoment(turn, moment []float64, d int) []float64 {
	z2 := make([]float64, d)
	for j := range d {
		t := turn[j*d : (j+1)*d]
		for i, a := range t {
			var s float64
			for k, b := range t {
				s += float64(moment[i*d+k] * b)
			}
			z2[j] += float64(a * s)
		}
	}
	return z2
}
