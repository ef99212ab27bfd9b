package targets

import (
	"fmt"
	"math"

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
		switch f.Kind {
		case "measured", "datasheet", "derived", "estimate":
		default:
			check(k+".kind", false, "is %q, must be measured, datasheet, derived or estimate", f.Kind)
		}
		check(k+".source", f.Source != "", "is missing: say where the figure comes from")
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
	figure("kernels.int2", t.Kernels.Int2, false)
	figure("kernels.int4", t.Kernels.Int4, false)
	figure("kernels.int8", t.Kernels.Int8, false)
	figure("kernels.float32", t.Kernels.Float32, false)
	figure("kernels.attention", t.Kernels.Attention, false)
	figure("fixed.us_per_layer", t.Fixed.UsPerLayer, true)
	figure("fixed.us_per_token", t.Fixed.UsPerToken, true)
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
