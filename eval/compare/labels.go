package compare

import (
	"cmp"
	"math"
	"slices"
)

// box is a rectangle on a canvas, in points.
type box struct{ x0, y0, x1, y1 float64 }

func (b box) overlaps(c box) bool { return b.x0 < c.x1 && c.x0 < b.x1 && b.y0 < c.y1 && c.y0 < b.y1 }
func (b box) within(c box) bool   { return b.x0 >= c.x0 && b.y0 >= c.y0 && b.x1 <= c.x1 && b.y1 <= c.y1 }

// spot is a point to label.
type spot struct{ x, y float64 }

// place puts a label of a width and a common height beside each spot, so that none covers another, a spot or an obstacle,
// and all lie within the area: as near as is free, by rings around the spot. What finds no place near is put into the first free one
// anywhere; where the whole area is full it gets none, and ok is false.
func place(spots []spot, widths []float64, height float64, area box, obstacles []box) (labels []box, ok []bool) {
	const mark = 5 // half the room of a spot
	labels, ok = make([]box, len(spots)), make([]bool, len(spots))
	taken := slices.Clone(obstacles)
	for _, s := range spots {
		taken = append(taken, box{s.x - mark, s.y - mark, s.x + mark, s.y + mark})
	}
	free := func(b box) bool {
		return b.within(area) && !slices.ContainsFunc(taken, b.overlaps)
	}
	for i, s := range spots {
		try := func(x, y float64) bool {
			b := box{x, y - height/2, x + widths[i], y + height/2}
			if !free(b) {
				return false
			}
			labels[i], ok[i] = b, true
			taken = append(taken, b)
			return true
		}
		for ring := 0; ring < 12 && !ok[i]; ring++ {
			d := 7 + 11*float64(ring)
			for turn := range 16 {
				angle := float64(turn) * math.Pi / 8
				dx, dy := d*math.Cos(angle), d*math.Sin(angle)
				x := s.x + dx
				switch { // the label's near end, or its middle, lies on the ring
				case turn == 4 || turn == 12:
					x -= widths[i] / 2
				case turn > 4 && turn < 12:
					x -= widths[i]
				}
				if turn == 4 || turn == 12 {
					dy += math.Copysign(height/4, dy)
				}
				if try(x, s.y+dy) {
					break
				}
			}
		}
		for y := area.y1 - height/2; y > area.y0 && !ok[i]; y -= height {
			for x := area.x0; x < area.x1; x += 20 {
				if try(x, y) {
					break
				}
			}
		}
	}
	return labels, ok
}

// spread moves heights apart until each has the gap to its neighbours, all between low and high where there is room. Their
// order stays, and the sum of the squares of their moves is the least: with i gaps taken off the i-th, it is a regression to
// a rising sequence, which pools neighbours that fall.
func spread(wanted []float64, gap, low, high float64) []float64 {
	order := make([]int, len(wanted))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wanted[a], wanted[b]) })
	type block struct{ sum, n float64 }
	var blocks []block
	for i, at := range order {
		blocks = append(blocks, block{wanted[at] - float64(i)*gap, 1})
		for n := len(blocks); n > 1 && blocks[n-2].sum/blocks[n-2].n > blocks[n-1].sum/blocks[n-1].n; n-- {
			blocks[n-2] = block{blocks[n-2].sum + blocks[n-1].sum, blocks[n-2].n + blocks[n-1].n}
			blocks = blocks[:n-1]
		}
	}
	at := make([]float64, len(wanted))
	highest := max(low, high-gap*float64(len(wanted)-1))
	i := 0
	for _, b := range blocks {
		for range int(b.n) {
			at[order[i]] = min(max(b.sum/b.n, low), highest) + float64(i)*gap
			i++
		}
	}
	return at
}
