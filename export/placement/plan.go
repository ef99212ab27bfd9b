package placement

import (
	"errors"
	"fmt"
	"sort"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/targets"
)

// ErrFit is wrapped by every refusal of a model that a target cannot hold.
var ErrFit = errors.New("does not fit")

// Buffers is the engine's own memory for a model, in bytes.
type Buffers struct {
	Arena  int64 `json:"arena"`  // activations and attention scratch
	Logits int64 `json:"logits"` // what the caller of the engine keeps beside the arena
	Cache  int64 `json:"cache"`  // keys and values of one sequence
}

// Layout is a plan: a tier for every tensor, and what that leaves free.
type Layout struct {
	Model     string     `json:"model"`
	Target    string     `json:"target"`
	Tensors   []Placed   `json:"tensors"`
	Memories  []Use      `json:"memories"`
	Buffers   Buffers    `json:"buffers"`
	ReadBytes float64    `json:"bytes_read_per_token"`
	Measured  *Measured  `json:"measured,omitempty"` // what was taken to be read of what need not be read whole
	MMU       *Pages     `json:"mmu,omitempty"`
	Partition *Partition `json:"partition,omitempty"`
	Cost      Cost       `json:"cost"`
	Notes     []string   `json:"notes,omitempty"`
}

// Placed is a tensor with its tier.
type Placed struct {
	Item
	Tier image.Tier `json:"tier"`
}

// Use is how much of a memory is taken.
type Use struct {
	Name    string     `json:"name"`
	Tier    image.Tier `json:"tier"`
	Bytes   int64      `json:"bytes"`
	Usable  int64      `json:"usable"`
	Buffers int64      `json:"buffers"`
	Weights int64      `json:"weights"`
	Free    int64      `json:"free"`
	Read    float64    `json:"bytes_read_per_token"`
}

// Pages is how many pages of the address table are taken.
type Pages struct {
	PageBytes int64 `json:"page_bytes"`
	Pages     int64 `json:"pages"`
	App       int64 `json:"app"`
	PSRAM     int64 `json:"psram"`
	Image     int64 `json:"image"`
	Free      int64 `json:"free"`
}

// Partition is how much of the model's flash partition is taken.
type Partition struct {
	Bytes int64 `json:"bytes"`
	Image int64 `json:"image"`
	Free  int64 `json:"free"`
}

// Plan places a model on a target. imageBytes is the size of the whole image file, which flash must hold; m says
// what a token reads of what it need not read whole; nil: everything, of a head without clusters. The error wraps [ErrFit].
func Plan(c *configs.Config, t *targets.Target, b Buffers, imageBytes int64, m *Measured) (*Layout, error) {
	l := &Layout{Model: c.Name, Target: t.Name, Buffers: b, Measured: m}
	for _, m := range t.Memories {
		l.Memories = append(l.Memories, Use{Name: m.Name, Tier: m.Tier, Bytes: m.Bytes, Usable: m.Usable, Free: m.Usable})
	}
	for _, buf := range []struct {
		what  string
		bytes int64
		tier  image.Tier
		help  string
	}{
		{"arena", b.Arena, t.Buffers.Arena, "lower d_model, d_ff or context_length, or buffers.batch of the target"},
		{"logits", b.Logits, t.Buffers.Arena, "lower vocab_size"},
		{"key/value cache", b.Cache, t.Buffers.Cache, "lower context_length, n_layers or d_model"},
	} {
		u := l.use(buf.tier)
		if buf.bytes > u.Free {
			return nil, fmt.Errorf("%s %w on %s: the engine's %s needs %s bytes of %s, %s are left of %s: %s",
				c.Name, ErrFit, t.Name, buf.what, digits.Comma(buf.bytes), u.Name, digits.Comma(u.Free), digits.Comma(u.Usable), buf.help)
		}
		u.Buffers += buf.bytes
		u.Free -= buf.bytes
	}
	if err := l.place(Items(c, m), t); err != nil {
		return nil, err
	}
	if err := l.flash(t, imageBytes); err != nil {
		return nil, err
	}
	l.Cost = l.Estimate(c, t, t.Profile(""), 0, c.ContextLength-1)
	l.explain(c, t)
	return l, nil
}

// Tier is where the plan puts a tensor.
func (l *Layout) Tier(name string) (image.Tier, bool) {
	for _, p := range l.Tensors {
		if p.Name == name {
			return p.Tier, true
		}
	}
	return 0, false
}

// use finds the account of a tier; targets list the tiers that they refer to.
func (l *Layout) use(tier image.Tier) *Use {
	for i := range l.Memories {
		if l.Memories[i].Tier == tier {
			return &l.Memories[i]
		}
	}
	return nil
}

// place puts the items into memories: the hottest first, each into the fastest memory with room. At equal heat the
// float vectors go first (few bytes, read through the float unit), then the larger, so that the smaller fill the gap.
func (l *Layout) place(items []Item, t *targets.Target) error {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool {
		x, y := items[order[a]], items[order[b]]
		switch {
		case x.table() != y.table():
			return y.table()
		case (x.Bits == 32) != (y.Bits == 32):
			return x.Bits == 32
		case heat(x) != heat(y):
			return heat(x) > heat(y)
		}
		return x.Bytes > y.Bytes
	})
	l.Tensors = make([]Placed, len(items))
	last := len(l.Memories) - 1
	for _, i := range order {
		it := items[i]
		from := 0
		if it.table() {
			from = last
		}
		m := from
		for m <= last && align(it.Bytes, t.Memories[m].Align) > l.Memories[m].Free {
			m++
		}
		if m > last {
			return fmt.Errorf("%s %w on %s: %s needs %s bytes%s: choose a smaller model or fewer bits",
				l.Model, ErrFit, l.Target, it.Name, digits.Comma(it.Bytes), l.left())
		}
		u := &l.Memories[m]
		size := align(it.Bytes, t.Memories[m].Align)
		u.Weights += size
		u.Free -= size
		u.Read += it.ReadBytes
		l.ReadBytes += it.ReadBytes
		l.Tensors[i] = Placed{it, u.Tier}
		if u.Tier == image.Flash && !it.table() && it.ReadBytes > 0 {
			l.Notes = append(l.Notes, fmt.Sprintf("%s is read whole from flash for every token: faster memories are full", it.Name))
		}
	}
	return nil
}

// heat orders items in hundredths, so that padding does not tell equal ones apart.
func heat(i Item) int { return int(i.Heat()*100 + 0.5) }

func (l *Layout) left() string {
	s := ""
	for _, u := range l.Memories {
		s += fmt.Sprintf(", %s has %s left of %s", u.Name, digits.Comma(u.Free), digits.Comma(u.Usable))
	}
	return s
}

// flash checks that the image fits its partition and its mapping the address table.
func (l *Layout) flash(t *targets.Target, imageBytes int64) error {
	if f := t.Flash; f != nil {
		l.Partition = &Partition{f.ModelBytes, imageBytes, f.ModelBytes - imageBytes}
		if l.Partition.Free < 0 {
			big := l.Tensors[0]
			for _, p := range l.Tensors {
				if p.Bytes > big.Bytes {
					big = p
				}
			}
			return fmt.Errorf("%s %w on %s: the image has %s bytes, its flash partition %s: %s too many; the largest tensor is %s with %s bytes: lower vocab_size, ple_dim or its bits",
				l.Model, ErrFit, l.Target, digits.Comma(imageBytes), digits.Comma(f.ModelBytes), digits.Comma(-l.Partition.Free), big.Name, digits.Comma(big.Bytes))
		}
	}
	if m := t.MMU; m != nil {
		p := &Pages{PageBytes: m.PageBytes, Pages: m.Pages, App: m.AppPages, Image: align(imageBytes, m.PageBytes) / m.PageBytes}
		if ram := t.Memory(image.PSRAM); ram != nil {
			p.PSRAM = align(ram.Bytes, m.PageBytes) / m.PageBytes
		}
		p.Free = p.Pages - p.App - p.PSRAM - p.Image
		l.MMU = p
		if p.Free < 0 {
			return fmt.Errorf("%s %w on %s: the image needs %d pages of %s bytes, %d of %d are left beside the app's %d and PSRAM's %d: choose a smaller model",
				l.Model, ErrFit, l.Target, p.Image, digits.Comma(p.PageBytes), p.Free+p.Image, p.Pages, p.App, p.PSRAM)
		}
	}
	return nil
}
