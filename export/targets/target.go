// Package targets describes chips as data: memories, kernel costs, fixed work, address translation and flash layout,
// each figure with what it rests on. The files of this folder are built in; any other file of the same form works too.
//
// Caveat: the figures of a built-in chip come from other people's measurements and from estimates, as each says.
// A plan made from them is a plan, not a measurement.
package targets

import "github.com/chiplm/chiplm/export/image"

// Target is a chip.
type Target struct {
	Name     string   `yaml:"name" json:"name"`
	Title    string   `yaml:"title" json:"title"`
	Cores    int      `yaml:"cores" json:"cores"`
	ClockMHz float64  `yaml:"clock_mhz" json:"clock_mhz"`
	Memories []Memory `yaml:"memories" json:"memories"` // fastest first
	Buffers  Buffers  `yaml:"buffers" json:"buffers"`
	Kernels  Kernels  `yaml:"kernels" json:"kernels"`
	Fixed    Fixed    `yaml:"fixed" json:"fixed"`
	MMU      *MMU     `yaml:"mmu" json:"mmu,omitempty"`     // nil: addresses are no limit
	Flash    *Flash   `yaml:"flash" json:"flash,omitempty"` // nil: the image's size is no limit
}

// Figure is a number with what it rests on.
type Figure struct {
	Value  float64 `yaml:"value" json:"value"`
	Kind   string  `yaml:"kind" json:"kind"` // measured, datasheet, derived or estimate
	Source string  `yaml:"source" json:"source"`
}

// Memory is a kind of memory.
type Memory struct {
	Name          string     `yaml:"name" json:"name"`
	Tier          image.Tier `yaml:"tier" json:"tier"`
	Bytes         int64      `yaml:"bytes" json:"bytes"`
	Usable        int64      `yaml:"usable" json:"usable"` // what buffers and weights may take
	Align         int64      `yaml:"align" json:"align"`   // of a tensor
	SequentialMBs Figure     `yaml:"sequential_mb_s" json:"sequential_mb_s"`
	RowMBs        Figure     `yaml:"row_mb_s" json:"row_mb_s"`             // within one randomly chosen row
	RowLatencyUs  Figure     `yaml:"row_latency_us" json:"row_latency_us"` // before its first byte
}

// Buffers says where the engine's own memory lies.
type Buffers struct {
	Arena image.Tier `yaml:"arena" json:"arena"`
	Cache image.Tier `yaml:"cache" json:"cache"`
	Batch int        `yaml:"batch" json:"batch"` // tokens per pass that the arena is sized for
}

// Kernels holds the cycles of one core per weight of a product, or per multiply-accumulate of attention.
type Kernels struct {
	Int2      Figure `yaml:"int2" json:"int2"`
	Int4      Figure `yaml:"int4" json:"int4"`
	Int8      Figure `yaml:"int8" json:"int8"`
	Float32   Figure `yaml:"float32" json:"float32"`
	Attention Figure `yaml:"attention" json:"attention"`
}

// Cycles is the cost of a weight with the given bits.
func (k Kernels) Cycles(bits int) float64 {
	switch bits {
	case 2:
		return k.Int2.Value
	case 4:
		return k.Int4.Value
	case 8:
		return k.Int8.Value
	}
	return k.Float32.Value
}

// Fixed is the work that depends on neither weights nor position.
type Fixed struct {
	UsPerLayer Figure `yaml:"us_per_layer" json:"us_per_layer"`
	UsPerToken Figure `yaml:"us_per_token" json:"us_per_token"`
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
