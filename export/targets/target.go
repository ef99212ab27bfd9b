// Package targets describes chips as data: memories, kernel costs, fixed work, address translation and flash layout,
// each figure with what it rests on. The files of this folder are built in; any other file of the same form works too.
//
// Caveat: the figures of a built-in chip come from other people's measurements and from estimates, as each says.
// A plan made from them is a plan, not a measurement.
package targets

import (
	"slices"

	"github.com/chiplm/chiplm/export/image"
)

// Target is a chip.
type Target struct {
	Name     string    `yaml:"name" json:"name"`
	Title    string    `yaml:"title" json:"title"`
	Cores    int       `yaml:"cores" json:"cores"`
	ClockMHz float64   `yaml:"clock_mhz" json:"clock_mhz"`
	Memories []Memory  `yaml:"memories" json:"memories"` // fastest first
	Buffers  Buffers   `yaml:"buffers" json:"buffers"`
	Profiles []Profile `yaml:"profiles" json:"profiles"`     // of engines; the first is that of this project
	MMU      *MMU      `yaml:"mmu" json:"mmu,omitempty"`     // nil: addresses are no limit
	Flash    *Flash    `yaml:"flash" json:"flash,omitempty"` // nil: the image's size is no limit
}

// Figure is a number with what it rests on.
type Figure struct {
	Value  float64 `yaml:"value" json:"value"`
	Kind   string  `yaml:"kind" json:"kind"` // measured, datasheet, derived, calibrated or estimate
	Source string  `yaml:"source" json:"source"`
}

// Memory is a kind of memory.
type Memory struct {
	Name          string     `yaml:"name" json:"name"`
	Tier          image.Tier `yaml:"tier" json:"tier"`
	Bytes         int64      `yaml:"bytes" json:"bytes"`
	Usable        int64      `yaml:"usable" json:"usable"`                   // what buffers and weights may take
	Align         int64      `yaml:"align" json:"align"`                     // of a tensor
	Line          int64      `yaml:"line" json:"line"`                       // bytes that are fetched at a time; 1: no cache before it
	Overlap       bool       `yaml:"overlap" json:"overlap"`                 // it is read while the cores compute
	SequentialMBs Figure     `yaml:"sequential_mb_s" json:"sequential_mb_s"` // by all cores together
	RowMBs        Figure     `yaml:"row_mb_s" json:"row_mb_s"`               // by one core, within one randomly chosen row
	RowLatencyUs  Figure     `yaml:"row_latency_us" json:"row_latency_us"`   // before its first byte
	Faster        *Faster    `yaml:"faster" json:"faster,omitempty"`         // nil: it has one speed
}

// Faster is a memory set to a higher clock.
type Faster struct {
	Title string `yaml:"title" json:"title"`
	Times Figure `yaml:"times" json:"times"` // as fast as usual, sequentially and within rows
}

// Buffers says where the engine's own memory lies.
type Buffers struct {
	Arena image.Tier `yaml:"arena" json:"arena"`
	Cache image.Tier `yaml:"cache" json:"cache"`
	Batch int        `yaml:"batch" json:"batch"` // tokens per pass that the arena is sized for
}

// MMU is the table that maps flash and external memory into addresses.
type MMU struct {
	PageBytes int64 `yaml:"page_bytes" json:"page_bytes"`
	Pages     int64 `yaml:"pages" json:"pages"`
	AppPages  int64 `yaml:"app_pages" json:"app_pages"`
}

// Flash is the layout of the flash chip.
type Flash struct {
	Chip        string `yaml:"chip" json:"chip,omitempty"` // as flashing programs name it; empty: they cannot be used
	AppBytes    int64  `yaml:"app_bytes" json:"app_bytes"`
	ModelOffset int64  `yaml:"model_offset" json:"model_offset"`
	ModelBytes  int64  `yaml:"model_bytes" json:"model_bytes"`
}

// Memory finds the memory of a tier; nil if the target has none.
func (t *Target) Memory(tier image.Tier) *Memory {
	for i := range t.Memories {
		if t.Memories[i].Tier == tier {
			return &t.Memories[i]
		}
	}
	return nil
}

// With is the target with the memory of a tier set to its higher clock; nil if it has none.
func (t *Target) With(tier image.Tier) *Target {
	m := t.Memory(tier)
	if m == nil || m.Faster == nil {
		return nil
	}
	fast := *t
	fast.Memories = slices.Clone(t.Memories)
	f := fast.Memory(tier)
	f.SequentialMBs.Value *= m.Faster.Times.Value
	f.RowMBs.Value *= m.Faster.Times.Value
	f.Faster = nil
	return &fast
}
