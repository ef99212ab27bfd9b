// Package profile says where the time of training goes.
//
// A [Profile] is a stopwatch that never stops: each lap charges the time since the lap before to one kind of work. So no
// moment is counted twice or left out, and the kinds add up to the time between [Profile.Start] and [Profile.Stop]. A nil
// profile records nothing, at the cost of one comparison a lap.
//
// A profile belongs to one worker, which hands it from goroutine to goroutine but never uses it from two at once. There
// is no lock. The figures of several workers are added up afterwards, by [Sum].
package profile

import "time"

// Cost is what a piece of work is and how large it is. The zero value is work of kind [Rest].
type Cost struct {
	Kind  Kind
	FLOP  int64 // nominal model arithmetic of a product; 0 for other work
	Bytes int64 // that element-wise work must read and write once; 0 for products
}

// Product is the cost of a matrix product, rows x inner times inner x cols: two operations for each pair of factors.
func Product(k Kind, rows, cols, inner int) Cost {
	return Cost{Kind: k, FLOP: 2 * int64(rows) * int64(cols) * int64(inner)}
}

// Memory is the cost of element-wise work on a number of float32 values, read and written together. Small operands, such
// as a gain or the scales, are left out.
func Memory(k Kind, values int) Cost { return Cost{Kind: k, Bytes: 4 * int64(values)} }

// Row is what a profile recorded of one kind.
type Row struct {
	Time  time.Duration
	Laps  int64
	FLOP  int64
	Bytes int64
}

// Profile adds up the time of one worker by kind of work.
type Profile struct {
	last time.Time
	rows [kinds]Row
}

// Start empties the profile; the first lap begins at now.
func (p *Profile) Start(now time.Time) {
	if p != nil {
		*p = Profile{last: now}
	}
}

// Lap charges the time since the last lap.
func (p *Profile) Lap(c Cost) {
	if p != nil {
		p.lap(c, time.Now())
	}
}

// Stop charges the time from the last lap to now to [Rest].
func (p *Profile) Stop(now time.Time) {
	if p != nil {
		p.lap(Cost{}, now)
	}
}

func (p *Profile) lap(c Cost, now time.Time) {
	r := &p.rows[c.Kind]
	r.Time += now.Sub(p.last)
	r.Laps++
	r.FLOP += c.FLOP
	r.Bytes += c.Bytes
	p.last = now
}

// Sum adds up profiles. The result has a row for every [Kind], in their order.
func Sum(profiles []*Profile) []Row {
	sum := make([]Row, kinds)
	for _, p := range profiles {
		for k, r := range p.rows {
			s := &sum[k]
			s.Time += r.Time
			s.Laps += r.Laps
			s.FLOP += r.FLOP
			s.Bytes += r.Bytes
		}
	}
	return sum
}
