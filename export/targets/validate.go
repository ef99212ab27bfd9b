package targets

import (
	"fmt"
	"math"
	"slices"

	"github.com/chiplm/chiplm/export/image"
)

// validate returns the first key that is wrong and why, or two empty strings.
func (t *Target) validate() (key, why string) {
	check := func(k string, ok bool, format string, a ...any) {
		if key == "" && !ok {
			key, why = k, fmt.Sprintf(format, a...)
		}
	}
	figure := func(k string, f Figure, zeroAllowed bool) {
		v := f.Value
		check(k+".value", v > 0 || zeroAllowed && v == 0, "is %v, must be positive", v)
		check(k+".value", !math.IsInf(v, 0) && v < 1e9, "is %v, must be below 1e9", v)
		rests(k, f.Kind, f.Source, check)
	}
	check("name", t.Name != "", "is missing")
	check("cores", t.Cores >= 1 && t.Cores <= 64, "is %d, must lie in 1 to 64", t.Cores)
	check("clock_mhz", t.ClockMHz > 0 && t.ClockMHz <= 1e5, "is %v, must lie above 0 and up to 100000", t.ClockMHz)
	check("memories", len(t.Memories) > 0, "must list at least one memory")
	seen := map[image.Tier]int{}
	for i, m := range t.Memories {
		k := fmt.Sprintf("memories[%d].", i)
		check(k+"name", m.Name != "", "is missing")
		first, twice := seen[m.Tier]
		check(k+"tier", !twice, "%s is the tier of memories[%d] too; each memory needs its own", m.Tier, first)
		check(k+"tier", i == 0 || m.Tier > t.Memories[i-1].Tier, "%s comes after %s; list the fastest first", m.Tier, t.Memories[max(i-1, 0)].Tier)
		seen[m.Tier] = i
		check(k+"bytes", m.Bytes > 0 && m.Bytes <= 1<<44, "is %d, must lie in 1 to 2^44", m.Bytes)
		check(k+"usable", m.Usable > 0 && m.Usable <= m.Bytes, "is %d, must lie in 1 to the %d bytes there are", m.Usable, m.Bytes)
		check(k+"align", m.Align >= 16 && m.Align <= 4096 && m.Align&(m.Align-1) == 0, "is %d, must be a power of two in 16 to 4096", m.Align)
		check(k+"line", m.Line >= 1 && m.Line <= 4096 && m.Line&(m.Line-1) == 0, "is %d, must be a power of two in 1 to 4096", m.Line)
		if m.Faster != nil {
			check(k+"faster.title", m.Faster.Title != "", "is missing")
			figure(k+"faster.times", m.Faster.Times, false)
			check(k+"faster.times.value", m.Faster.Times.Value > 1 && m.Faster.Times.Value <= 16, "is %v, must lie above 1 and up to 16", m.Faster.Times.Value)
		}
		figure(k+"sequential_mb_s", m.SequentialMBs, false)
		figure(k+"row_mb_s", m.RowMBs, false)
		figure(k+"row_latency_us", m.RowLatencyUs, true)
	}
	for _, b := range []struct {
		key  string
		tier image.Tier
	}{{"buffers.arena", t.Buffers.Arena}, {"buffers.cache", t.Buffers.Cache}} {
		check(b.key, t.Memory(b.tier) != nil, "is %s, which memories do not list", b.tier)
		check(b.key, b.tier != image.Flash, "is flash, which cannot be written while running")
	}
	check("buffers.batch", t.Buffers.Batch >= 1 && t.Buffers.Batch <= 1024, "is %d, must lie in 1 to 1024", t.Buffers.Batch)
	check("profiles", len(t.Profiles) > 0, "must list at least one profile of kernels")
	for i := range t.Profiles {
		p := &t.Profiles[i]
		k := fmt.Sprintf("profiles[%d].", i)
		check(k+"name", p.Name != "" && t.Profile(p.Name) == p, "is %q: each profile needs a name of its own", p.Name)
		p.validate(k, check, figure)
	}
	if m := t.MMU; m != nil {
		check("mmu.page_bytes", m.PageBytes >= 1024 && m.PageBytes <= 1<<30, "is %d, must lie in 1024 to 2^30", m.PageBytes)
		check("mmu.pages", m.Pages >= 1 && m.Pages <= 1<<20, "is %d, must lie in 1 to 2^20", m.Pages)
		check("mmu.app_pages", m.AppPages >= 0 && m.AppPages <= m.Pages, "is %d, must lie in 0 to the %d pages there are", m.AppPages, m.Pages)
	}
	if f := t.Flash; f != nil {
		check("flash.app_bytes", f.AppBytes >= 0 && f.AppBytes <= 1<<40, "is %d, must lie in 0 to 2^40", f.AppBytes)
		check("flash.model_offset", f.ModelOffset >= f.AppBytes && f.ModelOffset <= 1<<40 && f.ModelOffset%image.Align == 0,
			"is %#x, must be a multiple of %d after the app's %d bytes", f.ModelOffset, image.Align, f.AppBytes)
		check("flash.model_bytes", f.ModelBytes > 0 && f.ModelBytes <= 1<<40, "is %d, must lie in 1 to 2^40", f.ModelBytes)
		if chip := t.Memory(image.Flash); chip != nil {
			check("flash.model_bytes", f.ModelOffset+f.ModelBytes <= chip.Bytes, "ends at %#x, past the chip's %#x bytes",
				f.ModelOffset+f.ModelBytes, chip.Bytes)
		}
	}
	return key, why
}

// checker notes the first key that is wrong.
type checker func(key string, ok bool, format string, a ...any)

// rests checks what a figure rests on.
func rests(k, kind, source string, check checker) {
	switch kind {
	case "measured", "datasheet", "derived", "calibrated", "estimate":
	default:
		check(k+".kind", false, "is %q, must be measured, datasheet, derived, calibrated or estimate", kind)
	}
	check(k+".source", source != "", "is missing: say where the figure comes from")
}

func (p *Profile) validate(key string, check checker, figure func(string, Figure, bool)) {
	type id struct {
		work  Work
		bits  int
		stage string
	}
	seen, any := map[id]bool{}, map[id]bool{} // general kernels, by stage and by work
	for i, k := range p.Kernels {
		at := fmt.Sprintf("%skernels[%d]", key, i)
		check(at+".work", slices.Contains(Works(), k.Work), "is %q, which is no kind of work; there are %v", k.Work, Works())
		matrix := k.Work.weights()
		check(at+".bits", !matrix || slices.Contains(bits, k.Bits), "is %d, must be one of %v", k.Bits, bits)
		check(at+".bits", matrix || k.Bits == 0, "is %d, but %s has no weights", k.Bits, k.Work)
		general := k.Columns == 0 && k.Grouped == 0
		check(at+".columns", k.Columns >= 0 && k.Grouped >= 0 && (matrix || general), "and grouped choose among matrices, and are not below 0")
		first := id{k.Work, k.Bits, k.Stage}
		check(at+".work", !general || !seen[first], "%s is listed before", k.Work)
		check(at+".work", general || !seen[first], "comes after the general kernel for %s, and so is never chosen", k.Work)
		if general {
			seen[first] = true
			any[id{k.Work, k.Bits, ""}] = true
		}
		check(at+".work", !p.covers(k.Work), "%s has a kernel and is covered by fixed work too", k.Work)
		for _, c := range []struct {
			name  string
			value float64
		}{{"call", k.Call}, {"row", k.Row}, {"group", k.Group}, {"value", k.Value}} {
			check(at+"."+c.name, c.value >= 0 && c.value < 1e9, "is %v, must lie in 0 to 1e9", c.value)
		}
		rests(at, k.Kind, k.Source, check)
	}
	figure(key+"fixed.us_per_layer", p.Fixed.UsPerLayer, true)
	figure(key+"fixed.us_per_token", p.Fixed.UsPerToken, true)
	for i, w := range p.Fixed.Covers {
		check(fmt.Sprintf("%sfixed.covers[%d]", key, i), slices.Contains(Works(), w), "is %q, which is no kind of work; there are %v", w, Works())
	}
	for _, w := range Works() {
		if _, optional := instead[w]; optional {
			continue
		}
		need := []int{0}
		if w.weights() {
			need = bits
		}
		for _, b := range need {
			if w == Columns && b == 32 {
				continue // floats are never stored transposed
			}
			what := string(w)
			if b > 0 {
				what += fmt.Sprintf(" with %d bits", b)
			}
			check(key+"kernels", any[id{w, b, ""}] || p.covers(w), "have none for %s, nor does fixed.covers list it", what)
		}
	}
	figure(key+"handover_cycles", p.HandOver, true)
	r := &p.Reads
	switch r.Search {
	case SearchNone, SearchMeans, SearchBounds:
	default:
		check(key+"reads.search", false, "is %q, must be none, means or bounds", r.Search)
	}
	check(key+"reads.clusters", r.Search == SearchNone || r.Clusters >= 2 && r.Clusters <= 1<<16, "is %d, must lie in 2 to 65536", r.Clusters)
	check(key+"reads.most", r.Most >= 0, "is %d, must not be below 0", r.Most)
	for _, s := range []struct {
		name string
		f    Figure
		used bool
	}{{"rows", r.Rows, r.Search != SearchNone}, {"blocks", r.Blocks, r.Search == SearchBounds}, {"seconds", r.Seconds, r.Search == SearchBounds},
		{"neurons", r.Neurons, true}} {
		if s.used {
			figure(key+"reads."+s.name, s.f, true)
			check(key+"reads."+s.name+".value", s.f.Value <= 1, "is %v, a share must not be above 1", s.f.Value)
		}
	}
}
