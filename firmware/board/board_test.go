package board_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/image"
)

// expected is what a host with the same image answers: every logit, and the engine's own sampling.
func expected(t *testing.T, im *engine.Image, n, thousandths, topK int, seed uint64, prompt []int32) (a answer) {
	t.Helper()
	e, err := engine.New(im, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	m := im.Model()
	logits := make([]float32, m.VocabSize)
	rng := engine.RNG(seed)
	feed := prompt
	for {
		if err := e.ForwardLast(feed, logits); err != nil {
			t.Fatal(err)
		}
		if n == len(a.ids) {
			a.why = "length"
			return a
		}
		id, err := engine.Sample(logits, float32(thousandths)/1000, topK, &rng)
		if err != nil {
			t.Fatal(err)
		}
		if id == im.EndOfText() {
			a.why = "end"
			return a
		}
		a.ids = append(a.ids, id)
		if len(a.ids) == n {
			a.why = "length"
			return a
		}
		if e.Position() == m.ContextLength {
			a.why = "context"
			return a
		}
		feed = []int32{id}
	}
}

func generate(n, thousandths, topK int, seed uint64, flag int, prompt []int32) string {
	request := fmt.Sprintf("G %d %d %d %d %d %d", n, thousandths, topK, seed, flag, len(prompt))
	for _, id := range prompt {
		request += fmt.Sprint(" ", id)
	}
	return request + "\n"
}

func TestGenerateGivesTheTokensOfTheEngine(t *testing.T) {
	im, path := model(t)
	c := start(t, "--model", path)
	eot := im.EndOfText()
	long := make([]int32, im.Model().ContextLength)
	for i := range long {
		long[i] = int32(i * 7 % 270)
	}
	seen := map[string]int{}
	for i, r := range []struct {
		n, thousandths, topK int
		seed                 uint64
		prompt               []int32
	}{
		{20, 0, 0, 1, []int32{eot}},
		{20, 0, 40, 1, []int32{eot, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}},
		{20, 700, 40, 1, []int32{eot, 5, 6}},
		{20, 700, 1040, 1, []int32{eot, 5, 6}},
		{20, 700, 4000000000, 3, []int32{eot, 5, 6}},
		{20, 1000, 0, 1<<64 - 1, long[:8]},
		{20, 1, 3, 9, long[:9]},
		{0, 800, 5, 1, []int32{eot, 5}},
		{1, 800, 5, 1, []int32{eot, 5}},
		{1000000, 1500, 200, 4, []int32{eot, 5}},
		{1000000, 3000, 0, 5, []int32{7}},
		{1000, 500, 7, 6, long},
		{1000, 1000000, 0, 7, long[:40]},
	} {
		c.send(generate(r.n, r.thousandths, r.topK, r.seed, i%2, r.prompt))
		got, want := c.tokens(), expected(t, im, r.n, r.thousandths, r.topK, r.seed, r.prompt)
		if !slices.Equal(got.ids, want.ids) || got.why != want.why {
			t.Errorf("%+v gave %v %s\nthe engine %v %s", r, got.ids, got.why, want.ids, want.why)
		}
		if shown := len(got.text); shown != i%2*len(got.ids) {
			t.Errorf("%+v showed the bytes of %d tokens of %d", r, shown, len(got.ids))
		}
		seen[got.why]++
	}
	if seen["length"] == 0 || seen["context"] == 0 {
		t.Errorf("the requests ended in these ways only: %v", seen)
	}
}

// A model that chooses end-of-text ends there.
func TestGenerateEndsWithTheText(t *testing.T) {
	im, path := model(t)
	c := start(t, "--model", path)
	for seed := range uint64(4000) {
		want := expected(t, im, 1, 1000000, 0, seed, []int32{im.EndOfText()})
		if want.why != "end" {
			continue
		}
		c.send(generate(1, 1000000, 0, seed, 0, []int32{im.EndOfText()}))
		if got := c.tokens(); len(got.ids) != 0 || got.why != "end" {
			t.Errorf("it gave %v %s", got.ids, got.why)
		}
		return
	}
	t.Fatal("no seed draws end-of-text")
}

// unescape is the other direction of the protocol's escapes.
func unescape(t *testing.T, text string) []byte {
	t.Helper()
	b, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return []byte(b)
}

func TestTextIsEncodedOnTheBoard(t *testing.T) {
	im, path := model(t)
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := bpe.Parse(b.Tokenizer.JSON())
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, "--model", path)
	for _, r := range []struct{ sent, text string }{
		{"", ""},
		{" Once upon a time", "Once upon a time"},
		{"  two  spaces ", " two  spaces "},
		{` one\n\ntwo\\n`, "one\n\ntwo\\n"},
		{" caf\xc3\xa9", "caf\xc3\xa9"},
		{` caf\xc3\xA9\x00\xff\x0d`, "caf\xc3\xa9\x00\xff\r"},
		{" \xff\xfe\x01\t", "\xff\xfe\x01\t"},
		{" <|endoftext|>", "<|endoftext|>"},
	} {
		c.send("S 12 900 20 77" + r.sent + "\n")
		got := c.tokens()
		prompt := tok.Encode([]int32{im.EndOfText()}, []byte(r.text))
		want := expected(t, im, 12, 900, 20, 77, prompt)
		if !slices.Equal(got.ids, want.ids) || got.why != want.why {
			t.Errorf("%q gave %v %s\nthe engine %v %s", r.sent, got.ids, got.why, want.ids, want.why)
		}
		for i, id := range got.ids {
			if shown := unescape(t, got.text[i]); string(shown) != string(im.Token(id)) {
				t.Errorf("token %d is %q, shown as %q", id, im.Token(id), got.text[i])
			}
		}
	}
}

func TestDigestEqualsTheEngines(t *testing.T) {
	im, path := model(t)
	c := start(t, "--model", path)
	for _, n := range []int{1, 2, 17, im.Model().ContextLength} {
		e, err := engine.New(im, engine.Options{Batch: 1, Path: engine.PathPlain})
		if err != nil {
			t.Fatal(err)
		}
		logits := make([]float32, im.Model().VocabSize)
		digest, id := engine.NewDigest(), im.EndOfText()
		for i := range n {
			if err := e.ForwardLast([]int32{id}, logits); err != nil {
				t.Fatal(err)
			}
			digest = digest.Add(i, id, logits)
			if id, err = engine.ArgMax(logits); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		for mode := range 3 {
			want := fmt.Sprintf("D %d %d 0x%016x", n, mode, uint64(digest))
			if got := c.ask(fmt.Sprintf("D %d %d", n, mode)); got != want {
				t.Errorf("it gave %q, the engine %q", got, want)
			}
		}
	}
	c.send(generate(9, 0, 0, 1, 0, []int32{im.EndOfText()})) // the modes leave no trace
	if got, want := c.tokens(), expected(t, im, 9, 0, 0, 1, []int32{im.EndOfText()}); !slices.Equal(got.ids, want.ids) {
		t.Errorf("afterwards it gave %v, the engine %v", got.ids, want.ids)
	}
}

func TestInfo(t *testing.T) {
	im, path := model(t)
	c := start(t, "--model", path, "--sram", "300000")
	var info struct {
		Format   string
		Protocol int
		Cores    int
		Error    *struct{ Code, Message string }
		Model    struct {
			ImageBytes    int    `json:"image_bytes"`
			VocabSize     int    `json:"vocab_size"`
			ContextLength int    `json:"context_length"`
			EndOfText     int32  `json:"end_of_text"`
			ImageCRC      string `json:"image_crc32"`
			SHA           string `json:"model_sha256"`
		}
		Memories []struct {
			Name                         string
			Total, Free, Weights, Buffer int
		}
	}
	if err := json.Unmarshal([]byte(c.ask("I")), &info); err != nil {
		t.Fatal(err)
	}
	m := im.Model()
	if info.Format != "chiplm-info-1" || info.Protocol != 1 || info.Cores != 2 || info.Error != nil ||
		info.Model.ImageBytes != im.Size() || info.Model.VocabSize != m.VocabSize || info.Model.EndOfText != im.EndOfText() ||
		info.Model.ContextLength != m.ContextLength || info.Model.SHA != fmt.Sprintf("%x", m.ModelSHA256) {
		t.Errorf("the board says %+v of %+v", info, m)
	}
	weights := [3]int{}
	for _, x := range im.Tensors() {
		weights[x.Tier] += x.CodesBytes + x.ScaleBytes
	}
	for i, memory := range info.Memories {
		if least := weights[i]; memory.Weights < least || memory.Weights > least+200*len(im.Tensors()) {
			t.Errorf("%s holds %d bytes of weights, the image places %d", memory.Name, memory.Weights, least)
		}
	}
	if weights[0] == 0 {
		t.Error("the image places nothing in SRAM")
	}
}

func TestProfile(t *testing.T) {
	_, path := model(t)
	c := start(t, "--model", path)
	if got := c.ask("Q"); !strings.HasPrefix(got, "! profile ") {
		t.Errorf("Q is answered by %q", got)
	}
	if got := c.ask("Q 1"); got != "Q 1" {
		t.Errorf("Q 1 is answered by %q", got)
	}
	c.send("S 10 0 0 1 Once\n")
	want := c.tokens()
	var profile struct {
		Format  string
		Tokens  int
		US      float64
		Profile []struct {
			Operation string
			US        float64
		}
	}
	if err := json.Unmarshal([]byte(c.ask("Q")), &profile); err != nil {
		t.Fatal(err)
	}
	sum, names := 0.0, map[string]bool{}
	for _, o := range profile.Profile {
		sum += o.US
		names[o.Operation] = true
	}
	if profile.Tokens != 9 || sum < profile.US-1 || sum > profile.US+1 || !names["attention"] || !names["down"] || !names["head"] {
		t.Errorf("the profile is %+v", profile)
	}
	if got := c.ask("Q 0"); got != "Q 0" {
		t.Errorf("Q 0 is answered by %q", got)
	}
	c.send("S 10 0 0 1 Once\n")
	if got := c.tokens(); !slices.Equal(got.ids, want.ids) {
		t.Errorf("with a profile it gave %v, without %v", want.ids, got.ids)
	}
}

func TestBenchmark(t *testing.T) {
	im, path := model(t)
	c := start(t, "--model", path)
	c.send("M\n")
	var b struct {
		Format, Target string
		ClockMHz       int `json:"clock_mhz"`
		Memories       []struct {
			Name       string
			Sequential struct {
				One float64 `json:"one_core"`
				Two float64 `json:"two_cores"`
			} `json:"sequential_mb_s"`
			Rows []struct {
				Bytes int
				US    float64
			}
		}
		Kernels []struct {
			Symbol string
			Cycles int
		}
		Handover int `json:"handover_cycles"`
		Token    []struct{ Position, US int }
		Profile  []struct {
			Operation string
			US        float64
		}
	}
	if err := json.Unmarshal([]byte(c.line()), &b); err != nil {
		t.Fatal(err)
	}
	symbols := map[string]bool{}
	for _, k := range b.Kernels {
		symbols[k.Symbol] = true
	}
	last := b.Token[len(b.Token)-1]
	if b.Format != "chiplm-benchmark-1" || b.Target != "host" || len(b.Memories) != 3 || !symbols["product"] || !symbols["chiplm_pie_rows4_c128g64"] || b.Handover == 0 ||
		len(b.Profile) < 10 || last.Position != im.Model().ContextLength-1 || last.US == 0 {
		t.Errorf("the benchmark says %+v", b)
	}
	for _, m := range b.Memories {
		if m.Sequential.One <= 0 || m.Sequential.Two <= 0 || len(m.Rows) == 0 {
			t.Errorf("%s: %+v", m.Name, m)
		}
	}
	c.send(generate(9, 0, 0, 1, 0, []int32{im.EndOfText()})) // the benchmark leaves no trace
	if got, want := c.tokens(), expected(t, im, 9, 0, 0, 1, []int32{im.EndOfText()}); !slices.Equal(got.ids, want.ids) {
		t.Errorf("afterwards it gave %v, the engine %v", got.ids, want.ids)
	}
}

// An image without a tokenizer takes ids alone.
func TestImageWithoutTokenizer(t *testing.T) {
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	m := *b.Model
	m.Tokenizer, m.Sizes.TokenizerHash = bpe.AppendNone(nil, 0), [32]byte{}
	file, err := image.Encode(&m)
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, "--model", write(t, file))
	if got := c.ask("S 1 0 0 1 Once"); !strings.HasPrefix(got, "! encode ") {
		t.Errorf("S is answered by %q", got)
	}
	c.send(generate(5, 0, 0, 1, 1, []int32{1}))
	if got := c.tokens(); len(got.ids) != 5 || len(got.text) != 5 || got.text[0] != "" {
		t.Errorf("G gave %+v", got)
	}
}
