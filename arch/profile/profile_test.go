package profile

import (
	"testing"
	"time"
)

func TestEveryMomentIsChargedOnce(t *testing.T) {
	start := time.Now()
	var a, b Profile
	a.lap(Cost{Kind: Norm}, start) // before the start: forgotten
	a.Start(start)
	b.Start(start)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	a.lap(Cost{}, at(1))
	a.lap(Product(LinearForward, 2, 3, 5), at(4))
	a.lap(Memory(Norm, 7), at(5))
	a.lap(Product(LinearForward, 2, 3, 5), at(9))
	a.Stop(at(10))
	b.lap(Cost{Kind: Waiting}, at(6))
	b.Stop(at(10))
	want := map[Kind]Row{
		Rest:          {Time: 6 * time.Millisecond, Laps: 3},
		Waiting:       {Time: 6 * time.Millisecond, Laps: 1},
		LinearForward: {Time: 7 * time.Millisecond, Laps: 2, FLOP: 120},
		Norm:          {Time: time.Millisecond, Laps: 1, Bytes: 28},
	}
	sum := time.Duration(0)
	for k, row := range Sum([]*Profile{&a, &b}) {
		if row != want[Kind(k)] {
			t.Errorf("%v: %+v, want %+v", Kind(k), row, want[Kind(k)])
		}
		sum += row.Time
	}
	if sum != 20*time.Millisecond {
		t.Errorf("two profiles of 10 ms add up to %v", sum)
	}
}

func TestNoProfile(t *testing.T) {
	var p *Profile
	p.Start(time.Now())
	p.Lap(Memory(Norm, 1))
	p.Stop(time.Now())
}

func TestEveryKindHasItsName(t *testing.T) {
	seen := map[string]Kind{}
	for k := range kinds {
		other, taken := seen[k.String()]
		if k.String() == "" || taken {
			t.Errorf("kind %d is called %q, as is %d", k, k, other)
		}
		seen[k.String()] = k
	}
}
