package cost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/export/targets"
)

// ErrBenchmark is wrapped by every refusal of a benchmark's file.
var ErrBenchmark = errors.New("not a usable benchmark")

// BenchmarkFormat names the form of the JSON that a board prints.
const BenchmarkFormat = "chiplm-benchmark-1"

const maxBenchmarkBytes = 4 << 20

// Benchmark is what a board measured of itself.
type Benchmark struct {
	Format   string            `json:"format"`
	Target   string            `json:"target"`
	Virtual  bool              `json:"virtual"`  // the firmware ran on a host: speeds and cycles are that machine's
	Firmware string            `json:"firmware"` // hash or version
	Model    string            `json:"model"`    // SHA-256 of the model that tokens are of
	ClockMHz float64           `json:"clock_mhz"`
	PSRAMMHz float64           `json:"psram_mhz"`
	Cores    int               `json:"cores"`
	Line     int               `json:"cache_line"`
	Memories []BenchmarkMemory `json:"memories"`
	DMA      *float64          `json:"dma_copy_mb_s"` // null: not measured
	HandOver float64           `json:"handover_cycles"`
	Kernels  []BenchmarkKernel `json:"kernels"`
	Token    []BenchmarkToken  `json:"token"`
	Profile  []BenchmarkWork   `json:"profile"`
}

// BenchmarkMemory is the speed of a memory.
type BenchmarkMemory struct {
	Name       string `json:"name"` // as in the target
	Sequential struct {
		One float64 `json:"one_core"`
		Two float64 `json:"two_cores"`
	} `json:"sequential_mb_s"`
	Rows []BenchmarkRow `json:"rows"`
}

// BenchmarkRow is the time of a random row, read by one core.
type BenchmarkRow struct {
	Bytes int     `json:"bytes"`
	Us    float64 `json:"us"`
}

// BenchmarkKernel is the time of a call of a kernel on one core, from data in internal memory.
type BenchmarkKernel struct {
	Symbol  string  `json:"symbol"`
	Rows    int     `json:"rows"`
	Columns int     `json:"columns"`
	Bits    int     `json:"bits"`
	Group   int     `json:"group"`
	N       int     `json:"n"`
	Cycles  float64 `json:"cycles"`
}

// BenchmarkToken is the time of a whole token.
type BenchmarkToken struct {
	Position int     `json:"position"`
	Us       float64 `json:"us"`
}

// BenchmarkWork is the time of an operation of a token.
type BenchmarkWork struct {
	Operation string  `json:"operation"`
	Us        float64 `json:"us"`
}

// ReadBenchmark reads a file that a board's benchmark printed. Unknown fields, and values that no chip can have, are refused
// by name.
func ReadBenchmark(path string) (*Benchmark, error) {
	text, err := regular.ReadFile(path, maxBenchmarkBytes)
	if err != nil {
		return nil, fmt.Errorf("benchmark: %w", err)
	}
	b, err := ParseBenchmark(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// ParseBenchmark reads what [ReadBenchmark] does from memory.
func ParseBenchmark(text []byte) (*Benchmark, error) {
	b := new(Benchmark)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(b); err != nil {
		return nil, fmt.Errorf("%w: %w: give the JSON object that the board prints, and nothing else", ErrBenchmark, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows the JSON object: give that object alone", ErrBenchmark)
	}
	if b.Format != BenchmarkFormat {
		return nil, fmt.Errorf("%w: format is %q, this program reads %q: use firmware and program of one version", ErrBenchmark, b.Format, BenchmarkFormat)
	}
	if problem := b.check(); problem != "" {
		return nil, fmt.Errorf("%w: %s: measure again, or mend the firmware", ErrBenchmark, problem)
	}
	return b, nil
}

// Peaks that no memory of a chip passes: a vector of 16 bytes a cycle and core within, 8 bits at both edges of the clock
// from PSRAM, 4 bits at 120 MHz and both edges from flash.
const (
	vectorBytes = 16
	flashPeak   = 120
	octalBytes  = 2
)

// hostPeak is the peak, in MB/s, that no memory of the machine under a virtual board passes, whatever stands for which.
const hostPeak = 1e7

// peaks are the speeds that the memories cannot pass, by what the board is.
func (b *Benchmark) peaks() map[string]float64 {
	if b.Virtual {
		return map[string]float64{"sram": hostPeak, "psram": hostPeak, "flash": hostPeak}
	}
	return map[string]float64{"sram": vectorBytes * b.ClockMHz, "psram": octalBytes * b.PSRAMMHz, "flash": flashPeak}
}

// check returns the first field that is impossible, and why; empty if all are possible.
func (b *Benchmark) check() string {
	var problem string
	within := func(field string, v, low, high float64) {
		if problem == "" && !(v >= low && v <= high) {
			problem = fmt.Sprintf("%s is %v, which must lie in %v to %v", field, v, low, high)
		}
	}
	refuse := func(bad bool, format string, a ...any) {
		if problem == "" && bad {
			problem = fmt.Sprintf(format, a...)
		}
	}
	refuse(b.Target == "", "target is missing")
	refuse(b.Firmware == "", "firmware is missing")
	within("clock_mhz", b.ClockMHz, 10, 5000)
	within("psram_mhz", b.PSRAMMHz, 20, 250)
	within("cores", float64(b.Cores), 1, 2)
	within("cache_line", float64(b.Line), 16, 256)
	refuse(b.Line&(b.Line-1) != 0, "cache_line is %d, no power of two", b.Line)
	seen, peaks := map[string]bool{}, b.peaks()
	for i, m := range b.Memories {
		at := fmt.Sprintf("memories[%d] (%s).", i, m.Name)
		peak, known := peaks[m.Name]
		refuse(!known, "memories[%d].name is %q, which must be sram, psram or flash", i, m.Name)
		refuse(seen[m.Name], "memories[%d]: %s was listed before", i, m.Name)
		seen[m.Name] = true
		cores := 1.0
		if m.Name == "sram" {
			cores = float64(b.Cores) // each has a port of its own
		}
		within(at+"sequential_mb_s.one_core", m.Sequential.One, 0.5, peak)
		if b.Cores > 1 {
			within(at+"sequential_mb_s.two_cores", m.Sequential.Two, 0.5, peak*cores)
			refuse(!b.Virtual && m.Sequential.Two < 0.8*m.Sequential.One, "%ssequential_mb_s.two_cores is %v, less than one core's %v", at, m.Sequential.Two, m.Sequential.One)
		}
		for j, r := range m.Rows {
			row := fmt.Sprintf("%srows[%d].", at, j)
			within(row+"bytes", float64(r.Bytes), 1, 1<<20)
			within(row+"us", r.Us, float64(r.Bytes)/peak, 1e5)
		}
	}
	for _, name := range []string{"sram", "psram", "flash"} {
		refuse(!seen[name], "memories has no %s", name)
	}
	if b.DMA != nil {
		within("dma_copy_mb_s", *b.DMA, 0.5, peaks["psram"])
	}
	handOver := 1e5
	if b.Virtual {
		handOver = 1e8 // two threads that other programs hold up
	}
	within("handover_cycles", b.HandOver, 1, handOver)
	refuse(len(b.Kernels) == 0, "kernels is empty")
	for i, k := range b.Kernels {
		at := fmt.Sprintf("kernels[%d] (%s).", i, k.Symbol)
		refuse(k.Symbol == "", "kernels[%d].symbol is missing", i)
		within(at+"rows", float64(k.Rows), 0, 1<<20)
		within(at+"columns", float64(k.Columns), 0, 1<<20)
		refuse(!slices.Contains([]int{0, 2, 4, 8, 32}, k.Bits), "%sbits is %d, must be 2, 4, 8 or 32, or 0 where there are no weights", at, k.Bits)
		within(at+"group", float64(k.Group), 0, 1<<20)
		within(at+"n", float64(k.N), 0, 1<<20)
		// A vector instruction takes at most 16 values in a cycle; 10,000 cycles a value is no kernel.
		n := k.values()
		refuse(n < 1, "%srows, columns and n name no work", at)
		low := n / vectorBytes
		if b.Virtual {
			low = min(low, 1) // of a nanosecond
		}
		within(at+"cycles", k.Cycles, low, 1e4*n+1e6)
	}
	for i, t := range b.Token {
		at := fmt.Sprintf("token[%d].", i)
		within(at+"position", float64(t.Position), 0, 1<<20)
		refuse(i > 0 && t.Position <= b.Token[max(i-1, 0)].Position, "%sposition is %d, which must rise", at, t.Position)
		within(at+"us", t.Us, 1, 1e8)
	}
	for i, w := range b.Profile {
		refuse(w.Operation == "", "profile[%d].operation is missing", i)
		within(fmt.Sprintf("profile[%d] (%s).us", i, w.Operation), w.Us, 0, 1e8)
	}
	return problem
}

// values is the amount of a kernel's work: weights or elements, for each of n vectors or positions.
func (k *BenchmarkKernel) values() float64 {
	n := float64(max(k.Rows, 1)) * float64(max(k.Columns, 1)) * float64(max(k.N, 1))
	if k.Rows == 0 && k.Columns == 0 && k.N == 0 {
		return 0
	}
	return n
}

// Calibrate is a copy of a target with what a board measured put in: the speeds of its memories, the hand-over, and the
// cycles of this project's kernels, each scaled by what it took over what the target says, all shapes together. Notes say
// what was left alone. The figures of other engines stay.
func (b *Benchmark) Calibrate(t *targets.Target) (*targets.Target, []string, error) {
	if b.Virtual && b.Target != t.Name {
		return nil, nil, fmt.Errorf("%w for the target %s: this is the benchmark of a virtual board: its speeds are this machine's; measure on a board, or calibrate --target %s",
			ErrBenchmark, t.Name, b.Target)
	}
	if b.Target != t.Name {
		return nil, nil, fmt.Errorf("%w: target is %q, the target file is of %q: name the right one with --target", ErrBenchmark, b.Target, t.Name)
	}
	if b.Cores != t.Cores && !(b.Virtual && b.Cores > t.Cores) { // of this machine's cores some may be planned with
		return nil, nil, fmt.Errorf("%w: cores is %d, target %s has %d", ErrBenchmark, b.Cores, t.Name, t.Cores)
	}
	out := *t
	source := "benchmark of the board, firmware " + b.Firmware
	clock := 1.0 // cycles of the target in one that was measured
	var notes []string
	if b.Virtual {
		source = "benchmark of a virtual board on this machine"
		clock = t.ClockMHz / b.ClockMHz // a virtual board counts time, whatever the clock is
		notes = b.slower()
	}
	figure := func(v float64) targets.Figure { return targets.Figure{Value: v, Kind: "measured", Source: source} }
	if !b.Virtual {
		out.ClockMHz = b.ClockMHz
	}
	out.Memories = slices.Clone(t.Memories)
	for i := range out.Memories {
		m := &out.Memories[i]
		name := m.Name
		if b.Virtual && b.peaks()[name] == 0 {
			name = "flash" // the image: the largest piece of what is one memory
			notes = append(notes, fmt.Sprintf("%s has the speeds at which the virtual board read its image", m.Name))
		}
		j := slices.IndexFunc(b.Memories, func(x BenchmarkMemory) bool { return x.Name == name })
		if j < 0 {
			return nil, nil, fmt.Errorf("%w: memories has no %s, which target %s lists", ErrBenchmark, m.Name, t.Name)
		}
		x := b.Memories[j]
		sequential := x.Sequential.One
		if t.Cores > 1 {
			sequential = x.Sequential.Two
		}
		m.SequentialMBs = figure(sequential)
		if len(x.Rows) > 0 {
			latency, speed := fitRows(x.Rows)
			m.RowLatencyUs, m.RowMBs = figure(latency), figure(speed)
		}
		if m.Line > 1 {
			m.Line = int64(b.Line)
		}
		if m.Faster != nil && b.PSRAMMHz >= 120 {
			m.Faster = nil // it was measured at the higher clock
		}
	}
	out.Profiles = slices.Clone(t.Profiles)
	ours := &out.Profiles[0]
	ours.Kernels = slices.Clone(ours.Kernels)
	if t.Cores > 1 || !b.Virtual {
		ours.HandOver = figure(b.HandOver * clock)
	}
	more, err := b.kernels(ours, clock, source)
	if err != nil {
		return nil, nil, err
	}
	return &out, append(notes, more...), nil
}

// slower says where two threads of a virtual board read more slowly than one.
func (b *Benchmark) slower() (notes []string) {
	for _, m := range b.Memories {
		if b.Cores > 1 && m.Sequential.Two < m.Sequential.One {
			notes = append(notes, fmt.Sprintf("%s: two cores read %v MB/s, one alone %v: other programs were running; measure again while none does",
				m.Name, m.Sequential.Two, m.Sequential.One))
		}
	}
	return notes
}

// kernels scales the kernels of a profile to what was measured: each by the times that calls it was part of took over what
// the profile says of them, all shapes together. clock is the cycles of the target in one that was measured.
func (b *Benchmark) kernels(p *targets.Profile, clock float64, source string) (notes []string, err error) {
	type sums struct{ both, square float64 }
	measured := map[*targets.Kernel]*sums{}
	var unknown []string
	for i := range b.Kernels {
		m := &b.Kernels[i]
		groups := m.of(p)
		for _, kernels := range groups {
			said := 0.0
			for _, k := range kernels {
				said += m.said(k)
			}
			for _, k := range kernels {
				if measured[k] == nil {
					measured[k] = &sums{}
				}
				measured[k].both += said * m.Cycles * clock
				measured[k].square += said * said
			}
		}
		if len(groups) == 0 && !slices.Contains(unknown, m.Symbol) {
			unknown = append(unknown, m.Symbol)
		}
	}
	switch {
	case len(unknown) > 0 && b.Virtual: // the chip's kernels, as they run here
		notes = append(notes, fmt.Sprintf("%d of the benchmark's kernels are none of the target's: what they took is not used", len(unknown)))
	case len(unknown) > 0:
		notes = append(notes, "of no kernel of the target, and so not used: "+strings.Join(unknown, ", "))
	}
	least, most := 0.1, 20.0
	if b.Virtual {
		least, most = 1e-4, 1e4 // the target is a guess at some desktop core
	}
	var left []string
	for i := range p.Kernels {
		k := &p.Kernels[i]
		s := measured[k]
		if s == nil || s.square == 0 {
			left = append(left, k.String())
			continue
		}
		times := s.both / s.square
		if times < least || times > most {
			return nil, fmt.Errorf("%w: kernels: %s took %.3g times what the target says: firmware and target do not belong together", ErrBenchmark, k, times)
		}
		k.Call, k.Row, k.Group, k.Value = k.Call*times, k.Row*times, k.Group*times, k.Value*times
		k.Kind, k.Source = "measured", fmt.Sprintf("%s: %.3f times what the target said", source, times)
	}
	if len(left) > 0 {
		notes = append(notes, "not measured, and so as before: "+strings.Join(left, ", "))
	}
	return notes, nil
}

// works are the names under which a board measures a kind of work whole, whatever kernels it is made of.
var works = map[string]targets.Work{
	"product": targets.Product, "columns": targets.Columns, "scores": targets.Scores, "softmax": targets.Softmax, "mix": targets.Mix,
	"rmsnorm": targets.Norm, "quantise": targets.Quantise, "rotate": targets.Rotate, "relu_gate": targets.Gate, "gelu_mix": targets.GELU,
}

// of finds the kernels that were measured: those of a kind of work together, or each of the symbol, which may serve several.
func (m *BenchmarkKernel) of(p *targets.Profile) (groups [][]*targets.Kernel) {
	if w, ok := works[m.Symbol]; ok {
		grouped := m.Group
		if grouped == 0 {
			grouped = m.Columns
		}
		if kernels := p.For(w, m.Bits, m.Columns, grouped); len(kernels) > 0 {
			groups = append(groups, kernels)
		}
		return groups
	}
	type entry struct {
		work targets.Work
		bits int
	}
	places := map[entry]int{} // the stages of one work that a symbol has are parts of its call
	for i := range p.Kernels {
		k := &p.Kernels[i]
		if k.Symbol != m.Symbol {
			continue
		}
		e := entry{k.Work, k.Bits}
		if _, ok := places[e]; !ok {
			places[e] = len(groups)
			groups = append(groups, nil)
		}
		groups[places[e]] = append(groups[places[e]], k)
	}
	return groups
}

// said is what a kernel of the target says of a call that was measured.
func (m *BenchmarkKernel) said(k *targets.Kernel) float64 {
	rows, columns, n := float64(max(m.Rows, 1)), float64(max(m.Columns, 1)), float64(max(m.N, 1))
	switch k.Work {
	case targets.Listed: // n of the rows are listed; 0: all
		listed := rows
		if m.N > 0 {
			listed = n
		}
		return k.Cycles(1, listed, listed*groupsOf(m), listed*columns)
	case targets.Product:
		return k.Cycles(1, rows*n, rows*n*groupsOf(m), rows*n*columns)
	case targets.Columns: // n of the columns are listed; 0: all
		listed := columns
		if m.N > 0 {
			listed = n
		}
		return k.Cycles(1, listed, math.Min(groupsOf(m), listed)*rows, listed*rows)
	case targets.Scores, targets.Mix: // n positions of one head
		return k.Cycles(1, n, columns, n*columns)
	case targets.Softmax: // of its stages some go over positions, the last over a head's elements
		return k.Cycles(1, 1, max(columns, n), max(columns, n))
	case targets.Blocks:
		return k.Cycles(1, rows, 0, rows*columns)
	}
	if m.Columns == 0 { // values in one vector
		return k.Cycles(1, 1, 1, max(rows, n))
	}
	return k.Cycles(n, n, n*groupsOf(m), n*columns)
}

func groupsOf(m *BenchmarkKernel) float64 {
	if m.Group == 0 {
		return 1
	}
	return math.Ceil(float64(m.Columns) / float64(m.Group))
}

// fitRows fits latency + bytes / speed to times of rows, by least squares; neither can be below 0. With one size, or times
// that do not rise with the bytes, all of it is speed.
func fitRows(rows []BenchmarkRow) (latencyUs, speed float64) {
	var n, x, y, xx, xy float64
	for _, r := range rows {
		b := float64(r.Bytes)
		n, x, y, xx, xy = n+1, x+b, y+r.Us, xx+b*b, xy+b*r.Us
	}
	if d := n*xx - x*x; d > 0 {
		slope := (n*xy - x*y) / d
		if latency := (y - slope*x) / n; slope > 1e-8 && latency >= 0 {
			return latency, 1 / slope
		}
	}
	return 0, xx / xy
}

// writeTarget prints a target as a YAML file, after checking that it can be read again.
func writeTarget(w io.Writer, name string, t *targets.Target, firmware string) error {
	text, err := yaml.MarshalWithOptions(t, yaml.Indent(2), yaml.IndentSequence(true))
	if err != nil {
		return fmt.Errorf("write target: %w", err)
	}
	text = append([]byte("# Written by chiplm cost --calibrate, from the benchmark of a board with firmware "+fmt.Sprintf("%q", firmware)+".\n"), text...)
	if _, err := targets.Parse(name, text); err != nil {
		return fmt.Errorf("the target would not be valid: %w", err)
	}
	_, err = w.Write(text)
	return err
}
