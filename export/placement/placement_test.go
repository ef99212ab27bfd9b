package placement

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/targets"
)

func combo() *configs.Config {
	return &configs.Config{
		Name: "combo", VocabSize: 4096, DModel: 128, NLayers: 6, NHeads: 4, DFF: 320, ContextLength: 256, PLEDim: 64,
		TieEmbeddings: true, Activation: configs.ReLU, QKNorm: true, AttentionScale: 1,
		Quant: configs.Quant{Weights: configs.WeightQuant{Bits: 4, Group: 64, Scale: configs.ScaleF32}},
	}
}

func esp32s3(t *testing.T) *targets.Target {
	t.Helper()
	x, err := targets.Load("esp32s3")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func plan(t *testing.T, c *configs.Config, b Buffers, imageBytes int64) *Layout {
	t.Helper()
	l, err := Plan(c, esp32s3(t), b, imageBytes, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Counted by hand from the shapes: 4 bits and a float per 64 columns are 0.5625 bytes a weight.
func TestItems(t *testing.T) {
	by := map[string]Item{}
	for _, i := range Items(combo(), nil) {
		by[i.Name] = i
	}
	for _, w := range []struct {
		name                string
		bytes               int64
		read, row, products float64
	}{
		{"token_embedding", 294912, 294912 + 72, 72, 524288},
		{"ple_table", 884736, 216, 216, 0}, // one row: 384 columns
		{"ple_projection", 27648, 27648, 0, 49152},
		{"layers.0.qkv", 27648, 27648, 0, 49152},
		{"layers.5.down", 23040, 23040, 0, 40960},
		{"layers.5.ple_output", 4608, 4608, 0, 8192},
		{"output_norm", 512, 512, 0, 0},
	} {
		i := by[w.name]
		if i.Bytes != w.bytes || math.Abs(i.ReadBytes-w.read) > 1e-9 || i.RowBytes != w.row || i.Weights != w.products {
			t.Errorf("%s: %+v, want %+v", w.name, i, w)
		}
	}
	// 1,802,240 weights take part in products; beside them the two rows and the norms: 19 vectors of 128 and one of 64.
	if got, want := combo().Budget().Total.TokenRead, int64(1802240*9/16+72+216+4*(19*128+64)); got != want {
		t.Errorf("bytes per token: %v, want %v", got, want)
	}
	c := combo()
	c.Experts, c.TieEmbeddings = 4, false
	by = map[string]Item{}
	for _, i := range Items(c, nil) {
		by[i.Name] = i
	}
	if g := by["layers.1.gate"]; g.Bytes != 4*23040 || g.ReadBytes != 23040 || g.Heat() != 0.25 {
		t.Errorf("an expert's gate: %+v", g)
	}
	if e := by["token_embedding"]; e.ReadBytes != 72 || e.Weights != 0 || !e.table() {
		t.Errorf("an untied embedding: %+v", e)
	}
	if r := by["layers.1.router"]; r.ReadBytes != 4*4*128 || r.Weights != 512 {
		t.Errorf("router: %+v", r)
	}
}

// Every tensor in one place, the sums right, nothing over its budget, nothing cold where hotter would fit.
func TestPlanProperties(t *testing.T) {
	moe := combo()
	moe.Experts = 4
	wide := combo()
	wide.TieEmbeddings, wide.VocabSize = false, 8192
	for _, c := range []*configs.Config{combo(), moe, wide} {
		l := plan(t, c, Buffers{Arena: 70000, Cache: 442368}, 3<<20)
		if len(l.Tensors) != len(c.Tensors()) {
			t.Fatalf("%d tensors placed of %d", len(l.Tensors), len(c.Tensors()))
		}
		sums := map[image.Tier]int64{}
		for i, w := range c.Tensors() {
			p := l.Tensors[i]
			if p.Name != w.Name {
				t.Fatalf("%s in the place of %s", p.Name, w.Name)
			}
			sums[p.Tier] += p.Bytes
			if p.table() != (p.Tier == image.Flash) {
				t.Errorf("%s, a table: %v, lies in %s", p.Name, p.table(), p.Tier)
			}
			if tier, ok := l.Tier(p.Name); !ok || tier != p.Tier {
				t.Errorf("Tier(%s) = %v", p.Name, tier)
			}
		}
		for _, u := range l.Memories {
			if sums[u.Tier] != u.Weights || u.Buffers+u.Weights+u.Free != u.Usable || u.Free < 0 {
				t.Errorf("%s: %+v, tensors sum to %d", u.Name, u, sums[u.Tier])
			}
		}
		sram := l.use(image.SRAM)
		for _, p := range l.Tensors {
			if p.Tier == image.PSRAM && p.Bytes <= sram.Free {
				t.Errorf("%s with %d bytes would fit the %d left in sram", p.Name, p.Bytes, sram.Free)
			}
			for _, q := range l.Tensors {
				if p.Tier == image.SRAM && q.Tier == image.PSRAM && p.Bits != 32 && heat(q.Item) > heat(p.Item) && q.Bytes <= p.Bytes {
					t.Errorf("%s is in sram, hotter and smaller %s is not", p.Name, q.Name)
				}
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		b      Buffers
		image  int64
		change func(c *configs.Config, t *targets.Target)
		want   string
	}{
		{"arena", Buffers{Arena: 300000, Cache: 1}, 1, nil, "arena needs 300,000 bytes of sram, 278,528 are left of 278,528"},
		{"logits", Buffers{Arena: 270000, Logits: 8576, Cache: 1}, 1, nil, "logits needs 8,576 bytes of sram, 8,528 are left of 278,528"},
		{"cache", Buffers{Arena: 1, Cache: 9 << 20}, 1, nil, "cache needs 9,437,184 bytes of psram"},
		{"partition", Buffers{Arena: 1, Cache: 1}, 15925248 + 1, nil,
			"the image has 15,925,249 bytes, its flash partition 15,925,248: 1 too many; the largest tensor is ple_table"},
		{"pages", Buffers{Arena: 1, Cache: 1}, 4 << 20, func(_ *configs.Config, t *targets.Target) { t.MMU.Pages = 200 },
			"the image needs 64 pages of 65,536 bytes, 59 of 200 are left"},
		{"weights", Buffers{Arena: 1, Cache: 1}, 1, func(_ *configs.Config, t *targets.Target) { t.Memories = t.Memories[:1] },
			"token_embedding needs 294,912 bytes, sram has"},
	} {
		cfg, target := combo(), esp32s3(t)
		if c.change != nil {
			c.change(cfg, target)
		}
		if c.name == "weights" {
			target.Buffers.Cache = image.SRAM
		}
		_, err := Plan(cfg, target, c.b, c.image, nil)
		if !errors.Is(err, ErrFit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
	if _, err := Plan(combo(), esp32s3(t), Buffers{Arena: 270000, Logits: 8528, Cache: 1}, 15925248, nil); err != nil {
		t.Errorf("a model that just fits: %v", err)
	}
}

// When PSRAM is full, dense tensors are read from flash, and the plan says so.
func TestSpill(t *testing.T) {
	target := esp32s3(t)
	target.Memories[1].Usable = 600000
	l, err := Plan(combo(), target, Buffers{Arena: 70000, Cache: 442368}, 3<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tier, _ := l.Tier("token_embedding"); tier != image.Flash {
		t.Errorf("token_embedding lies in %s", tier)
	}
	if len(l.Notes) == 0 || !strings.Contains(strings.Join(l.Notes, "\n"), "token_embedding is read whole from flash") {
		t.Errorf("notes: %q", l.Notes)
	}
}

func TestWrite(t *testing.T) {
	l := plan(t, combo(), Buffers{Arena: 70000, Cache: 442368}, 2345678)
	var b bytes.Buffer
	if err := l.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2,345,678", "ple_table", "layers.5.ple_norm", "not measured", "442,368",
		"512 pages of 65,536 bytes:\n  13 for the program, 128 for PSRAM, 36 for the image; 335 are free", "note: sram is filled on purpose"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if len(line) > 100 {
			t.Errorf("line of %d: %s", len(line), line)
		}
	}
	t.Log(b.String())
}

// TestIdleSearch: a search that is not made has the head read whole, and its data lie in the image all the same, unread.
func TestIdleSearch(t *testing.T) {
	c := combo()
	search := Head{Clusters: 256, Blocks: [2]float64{2000, 300}, Rows: 80}
	idle := search
	idle.Idle = true
	made, whole, got := Items(c, &Measured{Tokens: 1, Head: &search}), Items(c, nil), Items(c, &Measured{Tokens: 1, Head: &idle})
	if !slices.Equal(got[:len(whole)], whole) || len(got) != len(made) {
		t.Fatalf("%+v\nwithout a search %+v", got, whole)
	}
	for i, it := range got[len(whole):] {
		want := made[len(whole)+i]
		want.ReadBytes, want.RowBytes, want.RowReads, want.Weights = 0, 0, 0, 0
		if it != want {
			t.Errorf("%+v, want %+v", it, want)
		}
	}
}

// TestMeasuredItems: what need not be read whole is read as measured, everything else as before.
func TestMeasuredItems(t *testing.T) {
	c := combo()
	m := &Measured{Tokens: 100, Head: &Head{Clusters: 256, Blocks: [2]float64{2000, 300}, Rows: 80}}
	for range c.NLayers {
		m.Neurons = append(m.Neurons, Neurons{Experts: 100, Up: 6400, Down: 6000, Groups: 500})
	}
	before := Items(c, nil)
	after := Items(c, m)
	if len(after) != len(before)+5 {
		t.Fatalf("%d items, %d without clusters", len(after), len(before))
	}
	row := 128/2 + 128/64*4.0
	for i, b := range before {
		a := after[i]
		switch _, part := configs.SplitTensor(b.Name); part {
		case configs.Up:
			if a.ReadBytes != 64*row || a.RowBytes != a.ReadBytes || a.RowReads != 128 || a.Weights != 64*128 {
				t.Errorf("up: %+v", a)
			}
		case configs.Down: // columns of 128 codes, and 128 scales a group
			if a.ReadBytes != 60*64+5*512 || a.RowReads != 60 || a.Weights != 60*128 {
				t.Errorf("down: %+v", a)
			}
		case configs.TokenEmbedding:
			if a.ReadBytes != 81*row || a.Weights != 80*128 || a.Bytes != b.Bytes || a.table() {
				t.Errorf("embedding: %+v", a)
			}
		default:
			if a != b {
				t.Errorf("%s changed from %+v to %+v", b.Name, b, a)
			}
		}
	}
	want := map[string]float64{image.HeadRotation: 128*128 + 128*4, image.HeadBounds: float64((image.BoundsBytes(128, 256) + 15) / 16 * 16),
		image.HeadBlocks0: 2000 * 16, image.HeadBlocks1: 300 * 16, image.HeadOrder: 80 * 16}
	for _, a := range after[len(before):] {
		if a.ReadBytes != want[a.Name] || a.table() {
			t.Errorf("%s: %+v, want %v bytes", a.Name, a, want[a.Name])
		}
	}
	b := Buffers{Arena: 70000, Cache: 442368}
	dense, err := Plan(c, esp32s3(t), b, 3<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Plan(c, esp32s3(t), b, 3<<20, m)
	if err != nil {
		t.Fatal(err)
	}
	if l.Cost.MeanMs >= dense.Cost.MeanMs || l.ReadBytes >= dense.ReadBytes {
		t.Errorf("%v ms for %v, %v bytes for %v", l.Cost.MeanMs, dense.Cost.MeanMs, l.ReadBytes, dense.ReadBytes)
	}
	for _, p := range l.Tensors { // what is read whole belongs into the fastest memory, before what is read in part
		if _, part := configs.SplitTensor(p.Name); (part == configs.Up || part == configs.Down) && p.Tier == image.SRAM {
			t.Errorf("%s is placed in sram", p.Name)
		}
	}
}
