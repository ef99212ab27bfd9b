package clusters

import (
	"math"
	"sort"

	"github.com/chiplm/chiplm/data/splitmix"
)

// cluster groups the rows, orders them and bounds each group.
func (c *Clusters) cluster(s *space, count int, seed uint64) {
	dims := min(BoxDims, s.d)
	rest := append([]float64(nil), s.u...)
	for i := range s.v {
		clear(rest[i*s.d : i*s.d+dims])
	}
	c.Weights = s.weights(rest)
	clear(c.Weights[:dims])
	norms := make([]float64, s.v)
	for i := range norms {
		at := i * s.d
		norms[i] = norm(rest[at:at+s.d], s.u[at:at+s.d], c.Weights)
	}
	assigned := group(s.features(dims, norms, c.Weights), count, seed)
	c.Order, c.First = arrange(assigned, count)
	c.box(s, dims, norms)
}

// points are n vectors of width values.
type points struct {
	n, width int
	x        []float64
}

func (p points) at(i int) []float64 { return p.x[i*p.width : (i+1)*p.width] }

// features gives each row what its cluster's bound is made of, in units of logits: its coefficients in the directions of
// a box and the norm of the rest, each times the root mean square of what it meets in a token.
func (s *space) features(dims int, norms []float64, weights []float32) points {
	p := points{n: s.v, width: dims + 1}
	p.x = make([]float64, p.n*p.width)
	var n2 float64
	for j, w := range weights {
		n2 += float64(s.z2[j] * float64(float64(w)*float64(w)))
	}
	for i := range s.v {
		f := p.at(i)
		for j := range dims {
			f[j] = float64(s.u[i*s.d+j] * math.Sqrt(s.z2[j]))
		}
		f[dims] = float64(norms[i] * math.Sqrt(n2))
	}
	return p
}

// iterations of Lloyd's algorithm: the bounds gain nothing beyond.
const iterations = 25

// group is k-means (Lloyd) from the centres of k-means++ (Arthur and Vassilvitskii 2007), with no cluster empty and none
// larger than MaxSize times the mean. count is at most the number of points.
func group(p points, count int, seed uint64) []int32 {
	centres := points{n: count, width: p.width, x: seedCentres(p, count, seed)}
	assigned, distances := make([]int32, p.n), make([]float64, p.n)
	for range iterations {
		changed := assign(p, centres, assigned, distances)
		fill(p, count, assigned, distances)
		if !changed {
			break
		}
		means(p, centres, assigned)
	}
	limit(p, centres, assigned, distances)
	fill(p, count, assigned, distances)
	return assigned
}

func distance(a, b []float64) float64 {
	var s float64
	for j, x := range a {
		d := x - b[j]
		s += float64(d * d)
	}
	return s
}

// seedCentres chooses each centre among the points with a chance in proportion to its squared distance from those chosen.
func seedCentres(p points, count int, seed uint64) []float64 {
	random := splitmix.New(seed, 0)
	centres := append([]float64(nil), p.at(int(random.Below(uint64(p.n))))...)
	nearest := make([]float64, p.n)
	for i := range nearest {
		nearest[i] = math.Inf(1)
	}
	for len(centres) < count*p.width {
		last := centres[len(centres)-p.width:]
		var total float64
		for i := range nearest {
			nearest[i] = min(nearest[i], distance(p.at(i), last))
			total += nearest[i]
		}
		left := float64(float64(random.Next()>>11) * 0x1p-53 * total)
		chosen := 0
		for i, x := range nearest {
			if x > 0 {
				chosen = i // stays the last one with a chance if rounding leaves something over
				if left < x {
					break
				}
			}
			left -= x
		}
		centres = append(centres, p.at(chosen)...)
	}
	return centres
}

// assign gives every point to its nearest centre, the first of equals, and says whether any moved.
func assign(p, centres points, assigned []int32, distances []float64) (changed bool) {
	for i := range p.n {
		best, least := int32(0), math.Inf(1)
		for k := range centres.n {
			if d := distance(p.at(i), centres.at(k)); d < least {
				best, least = int32(k), d
			}
		}
		changed = changed || best != assigned[i]
		assigned[i], distances[i] = best, least
	}
	return changed
}

func sizes(assigned []int32, count int) []int {
	n := make([]int, count)
	for _, k := range assigned {
		n[k]++
	}
	return n
}

// fill gives every empty cluster the point that lies farthest from its own centre, out of clusters of several.
func fill(p points, count int, assigned []int32, distances []float64) {
	n := sizes(assigned, count)
	for k := range n {
		if n[k] > 0 {
			continue
		}
		far := -1
		for i, d := range distances {
			if n[assigned[i]] > 1 && (far < 0 || d > distances[far]) {
				far = i
			}
		}
		n[assigned[far]]--
		n[k]++
		assigned[far], distances[far] = int32(k), 0
	}
}

// means moves every centre to the mean of its points. No cluster is empty.
func means(p, centres points, assigned []int32) {
	clear(centres.x)
	for i, k := range assigned {
		c := centres.at(int(k))
		for j, x := range p.at(i) {
			c[j] += x
		}
	}
	for k, n := range sizes(assigned, centres.n) {
		for j := range centres.at(k) {
			centres.at(k)[j] /= float64(n)
		}
	}
}

// limit moves the outermost points of clusters that are too large to the nearest ones that have room.
func limit(p, centres points, assigned []int32, distances []float64) {
	most := max(1, MaxSize*p.n/centres.n)
	n := sizes(assigned, centres.n)
	for k := range n {
		if n[k] <= most {
			continue
		}
		var members []int
		for i, of := range assigned {
			if int(of) == k {
				members = append(members, i)
			}
		}
		sort.SliceStable(members, func(a, b int) bool { return distances[members[a]] > distances[members[b]] })
		for _, i := range members[:n[k]-most] {
			to, least := -1, 0.0
			for other := range n {
				if n[other] >= most {
					continue
				}
				if d := distance(p.at(i), centres.at(other)); to < 0 || d < least {
					to, least = other, d
				}
			}
			n[k]--
			n[to]++
			assigned[i], distances[i] = int32(to), least
		}
	}
}

// arrange lists the points cluster after cluster, ascending within one.
func arrange(assigned []int32, count int) (order, first []int32) {
	first = make([]int32, count+1)
	for _, k := range assigned {
		first[k+1]++
	}
	for k := range count {
		first[k+1] += first[k]
	}
	next := append([]int32(nil), first[:count]...)
	order = make([]int32, len(assigned))
	for i, k := range assigned {
		order[next[k]] = int32(i)
		next[k]++
	}
	return order, first
}

// box bounds the coefficients of every cluster in the first dims directions and the norms of the rest, rounded outwards.
func (c *Clusters) box(s *space, dims int, norms []float64) {
	c.Boxes = make([]Box, len(c.First)-1)
	bytes, step := bytesUp(norms)
	c.NormStep = step
	for j := range dims {
		var m float64
		for i := range s.v {
			m = max(m, math.Abs(s.u[i*s.d+j]))
		}
		c.BoxSteps[j] = up32(m / 127)
	}
	for k := range c.Boxes {
		b := &c.Boxes[k]
		for at := c.First[k]; at < c.First[k+1]; at++ {
			i := int(c.Order[at])
			b.Norm = max(b.Norm, bytes[i])
			for j := range dims {
				low, high := around(s.u[i*s.d+j], float64(c.BoxSteps[j]))
				if at == c.First[k] {
					b.Low[j], b.High[j] = low, high
				}
				b.Low[j], b.High[j] = min(b.Low[j], low), max(b.High[j], high)
			}
		}
	}
}

// around is the whole steps next to x, below and above; x is within 127 steps of 0.
func around(x, step float64) (low, high int8) {
	if step == 0 {
		return 0, 0
	}
	f := max(-127, min(127, math.Floor(x/step)))
	for f > -127 && float64(f*step) > x {
		f--
	}
	g := f
	for g < 127 && float64(g*step) < x {
		g++
	}
	return int8(f), int8(g)
}
