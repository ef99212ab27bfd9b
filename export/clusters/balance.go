package clusters

import (
	"fmt"
	"math"
	"sort"

	"github.com/chiplm/chiplm/qat"
)

// balance finds the rotation for hidden states of second moment C (d x d) and the given rows. With Q Q' the second
// moment of the rows and U s U' the eigenvalues of Q' C Q, the rows of U' Q' turn both moments into diagonals, whose
// products fall from the first direction to the last. Each row is scaled to length 1 and quantised to 8 bits: what
// follows works with the quantised matrix, so nothing but tightness depends on it.
func balance(hidden, rows []float64, v, d int) (*qat.Matrix, error) {
	q := make([]float64, d*d)
	var trace float64
	for i := range v {
		w := rows[i*d : (i+1)*d]
		for a, x := range w {
			if x == 0 {
				continue
			}
			for b := range a + 1 {
				q[a*d+b] += float64(x * w[b])
			}
			trace += float64(x * x)
		}
	}
	if trace == 0 {
		trace = 1
	}
	for i := range q {
		q[i] *= float64(d) / trace
	}
	for i := range d {
		q[i*d+i] += 1e-6
	}
	cholesky(q, d)

	// m = Q' C Q; Q is lower triangular.
	cq, m := make([]float64, d*d), make([]float64, d*d)
	for i := range d {
		for k := range d {
			for j := range k + 1 {
				cq[i*d+j] += float64(hidden[i*d+k] * q[k*d+j])
			}
		}
	}
	for k := range d {
		for i := range k + 1 {
			for j := range d {
				m[i*d+j] += float64(q[k*d+i] * cq[k*d+j])
			}
		}
	}
	values, vectors := eigen(m, d)
	order := make([]int, d)
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return values[order[a]] > values[order[b]] })

	turn := make([]float32, d*d)
	for r, e := range order {
		t := make([]float64, d)
		var length float64
		for a := range d {
			for b := range a + 1 {
				t[a] += float64(q[a*d+b] * vectors[b*d+e])
			}
			length += float64(t[a] * t[a])
		}
		length = math.Sqrt(length)
		for a, x := range t {
			turn[r*d+a] = float32(x / length)
		}
	}
	out, err := qat.Quantise(rotationSpec, turn, d, d)
	if err != nil {
		return nil, fmt.Errorf("%w: the rotation of hidden states: %w", ErrRange, err)
	}
	return out, nil
}

// cholesky replaces the lower triangle of a symmetric positive matrix by its factor Q (Q Q' = a), and the rest by zeros.
func cholesky(a []float64, d int) {
	for j := range d {
		for i := j; i < d; i++ {
			s := a[i*d+j]
			for k := range j {
				s -= float64(a[i*d+k] * a[j*d+k])
			}
			if i == j {
				a[i*d+j] = math.Sqrt(max(s, 1e-12))
			} else {
				a[i*d+j] = s / a[j*d+j]
			}
		}
		for k := j + 1; k < d; k++ {
			a[j*d+k] = 0
		}
	}
}

// eigen diagonalises a symmetric matrix, which it destroys, by Jacobi's rotations in a fixed order. Column e of vectors
// belongs to values[e].
func eigen(a []float64, d int) (values, vectors []float64) {
	vectors = make([]float64, d*d)
	var total float64
	for i := range d {
		vectors[i*d+i] = 1
	}
	for _, x := range a {
		total += float64(x * x)
	}
	for range 50 {
		var off float64
		for i := range d {
			for j := range i {
				off += float64(a[i*d+j] * a[i*d+j])
			}
		}
		if off <= 1e-24*total {
			break
		}
		for p := range d {
			for q := p + 1; q < d; q++ {
				rotate(a, vectors, d, p, q)
			}
		}
	}
	values = make([]float64, d)
	for i := range d {
		values[i] = a[i*d+i]
	}
	return values, vectors
}

// rotate makes a[p,q] zero.
func rotate(a, vectors []float64, d, p, q int) {
	x := a[p*d+q]
	if x == 0 {
		return
	}
	theta := (a[q*d+q] - a[p*d+p]) / (2 * x)
	t := 1 / (math.Abs(theta) + math.Sqrt(float64(theta*theta)+1))
	if theta < 0 {
		t = -t
	}
	c := 1 / math.Sqrt(float64(t*t)+1)
	s := float64(t * c)
	for k := range d {
		turnPair(&a[k*d+p], &a[k*d+q], c, s)
	}
	for k := range d {
		turnPair(&a[p*d+k], &a[q*d+k], c, s)
	}
	for k := range d {
		turnPair(&vectors[k*d+p], &vectors[k*d+q], c, s)
	}
}

func turnPair(x, y *float64, c, s float64) {
	a, b := *x, *y
	*x = float64(c*a) - float64(s*b)
	*y = float64(s*a) + float64(c*b)
}

// coefficients writes every row w as u with turn' u = w, so that w x = u (turn x). It fails if the remainder is not
// below 2^-24 of the largest norm of a row: that much is covered by the slack of a [Query].
func coefficients(turn, rows []float64, v, d int, norm float64) ([]float64, error) {
	a := make([]float64, d*d) // turn'
	for i := range d {
		for j := range d {
			a[i*d+j] = turn[j*d+i]
		}
	}
	lu := append([]float64(nil), a...)
	pivots, ok := factor(lu, d)
	if !ok {
		return nil, fmt.Errorf("%w: the rotation has no inverse", ErrRange)
	}
	u := make([]float64, v*d)
	for i := range v {
		w, x := rows[i*d:(i+1)*d], u[i*d:(i+1)*d]
		solve(lu, pivots, w, x)
		var rest float64
		for r := range d {
			s := -w[r]
			for k, y := range x {
				s += float64(a[r*d+k] * y)
			}
			rest += float64(s * s)
		}
		if !(math.Sqrt(rest) <= 0x1p-25*norm) {
			return nil, fmt.Errorf("%w: the rotation is too close to having no inverse", ErrRange)
		}
	}
	return u, nil
}

// factor replaces a by its factors L and U, rows exchanged so that pivots are largest.
func factor(a []float64, d int) (pivots []int, ok bool) {
	pivots = make([]int, d)
	for k := range d {
		p := k
		for i := k + 1; i < d; i++ {
			if math.Abs(a[i*d+k]) > math.Abs(a[p*d+k]) {
				p = i
			}
		}
		pivots[k] = p
		if a[p*d+k] == 0 {
			return nil, false
		}
		if p != k {
			for j := range d {
				a[k*d+j], a[p*d+j] = a[p*d+j], a[k*d+j]
			}
		}
		for i := k + 1; i < d; i++ {
			f := a[i*d+k] / a[k*d+k]
			a[i*d+k] = f
			for j := k + 1; j < d; j++ {
				a[i*d+j] -= float64(f * a[k*d+j])
			}
		}
	}
	return pivots, true
}

// solve finds x with a x = b, a given by its factors.
func solve(lu []float64, pivots []int, b, x []float64) {
	d := len(pivots)
	copy(x, b)
	for k, p := range pivots {
		x[k], x[p] = x[p], x[k]
	}
	for i := range d {
		for k := range i {
			x[i] -= float64(lu[i*d+k] * x[k])
		}
	}
	for i := d - 1; i >= 0; i-- {
		for k := i + 1; k < d; k++ {
			x[i] -= float64(lu[i*d+k] * x[k])
		}
		x[i] /= lu[i*d+i]
	}
}
