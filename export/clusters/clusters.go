package clusters

import (
	"errors"
	"fmt"
	"math"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
)

// Sizes of the stored form.
const (
	BoxDims    = 3  // directions in which a cluster has an interval
	Lanes      = 30 // codes in a block
	BlockBytes = 16 // a row's codes and norm at one level
	Levels     = 2
	MaxCode    = 7 // largest code of a lane

	// DefaultCount is the number of clusters when Options.Count is 0.
	DefaultCount = 256
	// MaxSize is the most rows a cluster holds, as a multiple of the mean.
	MaxSize = 4
)

// ErrRange is wrapped when the head has values whose bounds float32 cannot hold without loss: rows whose norms are not
// between 2^-40 and 2^40, or a rotation that no longer has an inverse. Such a head is used in full.
var ErrRange = errors.New("the head is out of range for clusters")

// Options of [Make].
type Options struct {
	Count int // clusters; 0: DefaultCount. At most one a row is made
	// Hidden is the second moment of the head's inputs; nil: as if it were the same in all directions. Bounds hold with
	// any; with the moment of text like that the model will write they are tightest.
	Hidden *Moment
	Seed   uint64 // of the first centres
}

// Clusters is what a two-stage head needs beside the head's own rows. The V rows are ordered cluster after cluster,
// ids ascending within one: position p holds the row of token Order[p].
type Clusters struct {
	V, D  int
	Order []int32 // V
	First []int32 // positions of cluster c: First[c] up to First[c+1]; Count+1

	Rotation *qat.Matrix // D x D, 8 bits, one scale a row: z = Rotation x

	Boxes    []Box
	BoxSteps [BoxDims]float32 // value of 1 in Box.Low and Box.High
	NormStep float32          // value of 1 in Box.Norm
	Weights  []float32        // D: v of the norms in the boxes, 0 in the box's own directions

	Levels [Levels]Level

	RowNorm float32 // largest norm of a row, rounded up
}

// Box bounds the rows of a cluster: their coefficients in the first directions, and the norm of the rest.
type Box struct {
	Low, High [BoxDims]int8 // rounded outwards
	Norm      uint8         // rounded up
}

// Level is one step of refinement of all rows.
type Level struct {
	Dims     [Lanes]int32   // the direction that a lane codes; two lanes may share one, the later codes what the earlier left
	Steps    [Lanes]float32 // value of code 1; 0: the lane is not used, its codes are 0
	Weights  []float32      // D: v of the norms, positive
	NormStep float32        // value of 1 in the norm byte
	// Blocks holds V blocks of BlockBytes, by position: 4-bit codes as docs/image.md packs 32 columns, lanes 0 to 14 in
	// columns 0 to 14, lanes 15 to 29 in columns 16 to 30; the byte of columns 15 and 31 is the norm, rounded up.
	Blocks []byte
}

// Count is the number of clusters.
func (c *Clusters) Count() int { return len(c.Boxes) }

// Make clusters the rows of a head. The result depends on its arguments alone, to the bit, on every machine. Errors wrap
// [ErrRange], or say which option is impossible.
func Make(head *qat.Matrix, opt Options) (*Clusters, error) {
	v, d := head.Rows, head.Cols
	if v < 1 || d < 1 || v > math.MaxInt32 {
		return nil, fmt.Errorf("clusters: a head of %d rows and %d columns is impossible", v, d)
	}
	if opt.Count == 0 {
		opt.Count = DefaultCount
	}
	if opt.Count < 0 {
		return nil, fmt.Errorf("clusters: %d clusters are impossible", opt.Count)
	}
	if opt.Hidden != nil && opt.Hidden.D != d {
		return nil, fmt.Errorf("clusters: the second moment has %d dimensions, the head %d", opt.Hidden.D, d)
	}
	rows := widen(head)
	norm := largestNorm(rows, d)
	if norm != 0 && !(norm >= 0x1p-40 && norm <= 0x1p40) {
		return nil, fmt.Errorf("%w: the largest norm of a row is %g", ErrRange, norm)
	}
	c := &Clusters{V: v, D: d, RowNorm: up32(norm)}
	hidden := regular(opt.Hidden, d)
	var err error
	if c.Rotation, err = balance(hidden, rows, v, d); err != nil {
		return nil, err
	}
	turn := widen(c.Rotation)
	u, err := coefficients(turn, rows, v, d, norm)
	if err != nil {
		return nil, err
	}
	s := &space{v: v, d: d, u: u, z2: turnedMoment(turn, hidden, d), floor: 0x1p-50 * norm * norm}
	if norm == 0 {
		s.floor = 1
	}
	c.cluster(s, min(opt.Count, v), opt.Seed)
	c.code(s)
	return c, c.check()
}

// space is the rows in the turned space, with what is known of its hidden states.
type space struct {
	v, d  int
	u     []float64 // v*d coefficients
	z2    []float64 // d: E[z_j^2], positive
	floor float64   // a mean square of coefficients below this counts as this in weights
}

// meanSquares is the mean over rows of r_j^2.
func meanSquares(r []float64, v, d int) []float64 {
	m := make([]float64, d)
	for i := range v {
		for j, x := range r[i*d : (i+1)*d] {
			m[j] += float64(x * x)
		}
	}
	for j := range m {
		m[j] /= float64(v)
	}
	return m
}

// weights are v for residuals r: (E r_j^2 / E z_j^2)^(1/4), with which r/v and z v have the same mean squares.
func (s *space) weights(r []float64) []float32 {
	w := make([]float32, s.d)
	for j, m := range meanSquares(r, s.v, s.d) {
		w[j] = float32(math.Sqrt(math.Sqrt(max(m, s.floor) / s.z2[j])))
	}
	return w
}

// norm is at least the norm of r/v over the directions whose weight is not 0, in real arithmetic, if every r_j differs
// from what it stands for by less than 2^-48 of the largest magnitude of u.
func norm(r, u []float64, w []float32) float64 {
	var n2, w2, largest float64
	for j, x := range r {
		if w[j] == 0 {
			continue
		}
		inverse := 1 / float64(w[j])
		n2 += float64(float64(x*inverse) * float64(x*inverse))
		w2 += float64(inverse * inverse)
	}
	for _, x := range u {
		largest = max(largest, math.Abs(x))
	}
	return float64(math.Sqrt(n2)*(1+0x1p-30)) + float64(float64(math.Sqrt(w2)*largest)*0x1p-47)
}

// bytesUp turns norms into bytes, rounded up, and the step that gives them their value.
func bytesUp(n []float64) (codes []uint8, step float32) {
	var m float64
	for _, x := range n {
		m = max(m, x)
	}
	codes, step = make([]uint8, len(n)), up32(m/255)
	if step == 0 {
		return codes, 0
	}
	for i, x := range n {
		codes[i] = uint8(min(math.Ceil(x/float64(step)), 255)) // 255 steps are at least m
		for float64(float64(codes[i])*float64(step)) < x {
			codes[i]++
		}
	}
	return codes, step
}

// up32 is the smallest float32 that is not below x.
func up32(x float64) float32 {
	f := float32(x)
	if float64(f) < x {
		f = math.Nextafter32(f, float32(math.Inf(1)))
	}
	return f
}

// widen is the exact values of a quantised matrix.
func widen(m *qat.Matrix) []float64 {
	groups := qat.Groups(m.Spec, m.Cols)
	width := m.Group
	if width <= 0 {
		width = m.Cols
	}
	out := make([]float64, m.Rows*m.Cols)
	for r := range m.Rows {
		for k := range m.Cols {
			i := r*m.Cols + k
			out[i] = float64(m.Codes[i]) * float64(m.Scales[r*groups+k/width])
		}
	}
	return out
}

func largestNorm(rows []float64, d int) float64 {
	var m float64
	for i := 0; i < len(rows); i += d {
		var s float64
		for _, x := range rows[i : i+d] {
			s += float64(x * x)
		}
		m = max(m, s)
	}
	return math.Sqrt(m) * (1 + 0x1p-30)
}

// check refuses values whose products a chip may flush to zero, or that overflow: the slack of a [Query] does not cover
// those.
func (c *Clusters) check() error {
	fine := func(x, least float32) bool { return x == 0 || x >= least && x <= 0x1p60 }
	bad := func(what string, x float32) error { return fmt.Errorf("%w: %s is %g", ErrRange, what, x) }
	for _, s := range c.Rotation.Scales {
		if !fine(s, 0x1p-20) {
			return bad("a scale of the rotation", s)
		}
	}
	floats := append([]float32{c.NormStep}, c.BoxSteps[:]...)
	weights := c.Weights
	for l := range c.Levels {
		floats = append(append(floats, c.Levels[l].NormStep), c.Levels[l].Steps[:]...)
		weights = append(weights[:len(weights):len(weights)], c.Levels[l].Weights...)
	}
	for _, x := range floats {
		if !fine(x, 0x1p-70) {
			return bad("a step", x)
		}
	}
	for _, x := range weights {
		if !fine(x, 0x1p-42) || x > 0x1p42 {
			return bad("a weight", x)
		}
	}
	return nil
}

// rotationSpec is how the rotation is stored.
var rotationSpec = qat.Spec{Bits: 8, Scale: configs.ScaleF32}
