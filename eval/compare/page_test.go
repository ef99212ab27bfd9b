package compare

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/eval/results"
)

// parsed reads a page strictly enough to see tags that do not close, and gives its elements and its text.
func parsed(t *testing.T, page string) (elements map[string]int, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(regexp.MustCompile(`(<meta [^>]*)>`).ReplaceAllString(page, "$1/>"))) // the one void element
	d.Entity = xml.HTMLEntity
	elements = map[string]int{}
	var b strings.Builder
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, b.String()
		}
		if err != nil {
			t.Fatalf("the page does not parse: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
			for _, a := range token.Attr {
				if a.Name.Local == "src" || a.Name.Local == "href" || strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("<%s %s=%q> does not work offline, or runs", token.Name.Local, a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			b.Write(token)
		}
	}
}

func pageOf(t *testing.T, runs ...results.Run) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if _, err := call(t, write(t, runs...), "--html", path, "--front", "50,300"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A page holds every arm, whatever its name, runs nothing, and needs nothing else.
func TestPage(t *testing.T) {
	odd := []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "a&amp;b", "</svg></style>", "{{.}}", "javascript:alert(1)", "моде́ль", "' onload='x"}
	runs := study()
	for i, name := range odd {
		runs = append(runs, made(name, 1, 0.9+float64(i)/1000), made(name, 2, 0.901+float64(i)/1000))
	}
	page := pageOf(t, runs...)
	elements, text := parsed(t, page)
	for _, name := range append(odd, "plain", "ple", "relu", "combo", "layers12", "vocab8192", "float") {
		if n := strings.Count(text, name); n < 3 {
			t.Errorf("%q is there %d times", name, n)
		}
	}
	if elements["script"]+elements["img"]+elements["link"] > 0 || elements["svg"] != 2 || elements["table"] != 4 {
		t.Errorf("elements: %v", elements)
	}
	for _, part := range []string{"@import", "url(", "#010203", "#040506", "#070809", "<?xml", " +- "} {
		if strings.Contains(page, part) {
			t.Errorf("the page holds %q", part)
		}
	}
	for _, part := range []string{"prefers-color-scheme: dark", `name="viewport"`, "Pareto front", "var(--accent)", "±"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %q", part)
		}
	}
}

// A page takes the place of an older one and of an empty file; results, however they are called, and other files stay.
func TestPageReplacesPagesOnly(t *testing.T) {
	results, other := write(t, study()...), write(t, made("plain", 1, 0.9))
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sweep, foreign := file("study.yaml", "seeds: [1]\n"), file("foreign.html", "<!DOCTYPE html>\n<p>"+generator[1:])
	blank, nothing := file("blank.html", ""), file("nothing.jsonl", "")
	soft, hard, link, loose := filepath.Join(dir, "soft"), filepath.Join(dir, "hard"), filepath.Join(dir, "link"), filepath.Join(dir, "loose")
	if err := errors.Join(os.Symlink(results, soft), os.Link(other, hard), os.Symlink(sweep, link), os.Symlink("later.html", loose)); err != nil {
		t.Fatal(err)
	}
	const lost, foreignFile = "which is read here and would be lost", "something else than a page of chiplm compare"
	for _, c := range []struct {
		page, want string
		usage      bool
	}{
		{results, lost, true}, {other, lost, true}, {soft, lost, true}, {hard, lost, true}, {nothing, lost, true},
		{filepath.Join(filepath.Dir(results), ".", filepath.Base(results)), lost, true},
		{sweep, foreignFile, false}, {foreign, foreignFile, false}, {link, foreignFile, false},
	} {
		before, err := os.ReadFile(c.page)
		if err != nil {
			t.Fatal(err)
		}
		out, err := call(t, results, other, nothing, "--html", c.page)
		if err == nil || !strings.Contains(err.Error(), c.page) || !strings.Contains(err.Error(), c.want) || isUsage(err) != c.usage || out != "" {
			t.Errorf("%s: %v, output %q", c.page, err, out)
		}
		if after, err := os.ReadFile(c.page); err != nil || string(after) != string(before) {
			t.Errorf("%s was changed: %v", c.page, err)
		}
	}
	for _, page := range []string{blank, loose, filepath.Join(dir, "later.html"), blank} {
		if _, err := call(t, results, "--html", page); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), generator) {
			t.Errorf("%s is no page: %v", page, err)
		}
	}
}

// The front is seen as a line though its arms lie close together, or are one; and red and grey, which say who is on it, mean
// nothing else in the other plot.
func TestTheFrontIsSeen(t *testing.T) {
	one, near := made("one", 1, 0.9), made("near", 1, 0.9001)
	speed(&near, 90.1)
	for _, runs := range [][]results.Run{{one}, {one, near}} {
		page := pageOf(t, append(runs, made("far", 1, 1.1))...)
		svgs := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
		longest := 0.0
		for _, path := range regexp.MustCompile(`<path d="M([^"A]*)"[^>]*stroke:var\(--accent\)`).FindAllStringSubmatch(svgs[0], -1) {
			var x, y []float64
			for _, at := range strings.Split(strings.NewReplacer("M", "L", "Z", "").Replace(path[1]), "L") {
				var a, b float64
				if n, _ := fmt.Sscanf(at, "%g,%g", &a, &b); n == 2 {
					x, y = append(x, a), append(y, b)
				}
			}
			if len(x) > 0 {
				longest = max(longest, slices.Max(x)-slices.Min(x)+slices.Max(y)-slices.Min(y))
			}
		}
		if longest < 100 {
			t.Errorf("%d arms: the line of the front is %g points long", len(runs), longest)
		}
		if strings.Contains(svgs[1], "--accent") {
			t.Error("the loss is drawn in the colour of the front")
		}
	}
	for _, h := range hues {
		r, g, b := int(h.R), int(h.G), int(h.B)
		if r > 150 && max(g, b) < r/2 || max(r, g, b)-min(r, g, b) < 20 {
			t.Errorf("%v is red or grey", h)
		}
	}
}

// Without curves and predicted speeds there are no plots, and of one arm there is a page.
func TestPageOfLittle(t *testing.T) {
	bare := made("plain", 1, 0.9)
	bare.Curve = nil
	speed(&bare, 0)
	if elements, _ := parsed(t, pageOf(t, bare)); elements["svg"] != 0 || elements["table"] != 3 {
		t.Errorf("%v", elements)
	}
	if elements, _ := parsed(t, pageOf(t, made("plain", 1, 0.9))); elements["svg"] != 2 {
		t.Errorf("%v", elements)
	}
}

// The names of 20 arms, and of 40, lie beside each other, off each other and within the plot, and so in the drawing.
func TestLabelsDoNotCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	area := box{0, 0, 800, 440}
	for range 50 {
		for _, n := range []int{1, 20, 40} {
			var spots []spot
			var widths []float64
			narrow := rng.Float64()
			for range n {
				spots = append(spots, spot{400 + narrow*380*(2*rng.Float64()-1), 220 + narrow*200*(2*rng.Float64()-1)})
				widths = append(widths, 20+100*rng.Float64())
			}
			labels, ok := place(spots, widths, lineHeight, area, nil)
			for i, b := range labels {
				if !ok[i] || !b.within(area) {
					t.Fatalf("label %d of %d: %v", i, n, b)
				}
				near(t, "width", b.x1-b.x0, widths[i], 1e-9)
				for _, c := range labels[:i] {
					if b.overlaps(c) {
						t.Fatalf("%v covers %v", b, c)
					}
				}
				for _, s := range spots {
					if b.overlaps(box{s.x - 1, s.y - 1, s.x + 1, s.y + 1}) {
						t.Fatalf("%v covers the spot %v", b, s)
					}
				}
			}
		}
	}
	page := pageOf(t, crowd(20)...)
	for i, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1) {
		if n := strings.Count(svg, "variant-"); n != 19 {
			t.Errorf("plot %d names %d of 19 variants", i, n)
		}
	}
	// Where there is no room, a name is left out rather than put over another.
	if _, ok := place(make([]spot, 2), []float64{9, 9}, 9, box{0, 0, 10, 10}, nil); ok[0] || ok[1] {
		t.Error("labels where there is no room")
	}
}

// Heights end up a gap apart, in their order, in range; and where they were apart already they stay.
func TestSpread(t *testing.T) {
	for _, c := range []struct{ wanted, want []float64 }{
		{[]float64{10, 50, 90}, []float64{10, 50, 90}},
		{[]float64{50, 50}, []float64{45, 55}},
		{[]float64{60, 50, 50}, []float64{64 - 2.0/3, 44 - 2.0/3, 54 - 2.0/3}}, // (50 - 0 + 50 - 10 + 60 - 20) / 3 = 43.33
		{[]float64{0, 0, 100}, []float64{0, 10, 100}},
		{[]float64{100, 100}, []float64{90, 100}},
		{nil, nil},
	} {
		for i, have := range spread(c.wanted, 10, 0, 100) {
			near(t, "height", have, c.want[i], 1e-9)
		}
	}
	rng := rand.New(rand.NewPCG(13, 14))
	for range 200 {
		var wanted []float64
		for range 1 + rng.IntN(30) {
			wanted = append(wanted, 500*rng.Float64()-50)
		}
		at := spread(wanted, 13, 0, 400)
		for i := range at {
			for j := range at[:i] {
				if math.Abs(at[i]-at[j]) < 13-1e-9 || (at[i] < at[j]) != (wanted[i] < wanted[j]) {
					t.Fatalf("%v from %v", at, wanted)
				}
			}
		}
		if slices.Min(at) < 0 || slices.Max(at) > 400+1e-9 {
			t.Fatalf("%v", at)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0.965, 1.06, "0.98 1.00 1.02 1.04 1.06"}, {298, 480, "300 350 400 450"}, {0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"}, {0.9011, 0.9017, "0.9011 0.9012 0.9013 0.9014 0.9015 0.9016 0.9017"},
		{-3, 4, "-2 0 2 4"},
	} {
		var have []string
		for _, tick := range ticks(c.low, c.high) {
			have = append(have, tick.Label)
		}
		if strings.Join(have, " ") != c.want {
			t.Errorf("%g to %g: %q, want %q", c.low, c.high, have, c.want)
		}
	}
}

// The mean of two runs that logged at other tokens, by hand.
func TestCurve(t *testing.T) {
	one, two, none := made("x", 1, 1), made("x", 2, 1), made("x", 3, 1)
	one.Curve = []results.Point{{Tokens: 300, Loss: 1}, {Tokens: 100, Loss: 4}, {Tokens: 200, Loss: 2}, {Tokens: 200, Loss: 2}}
	two.Curve = []results.Point{{Tokens: 150, Loss: 4}, {Tokens: 250, Loss: 2}, {Tokens: 350, Loss: 1}}
	none.Curve = nil
	a := newArm(Group{Name: "x", Runs: []results.Run{one, two, none}})
	if have, want := a.curve(), []results.Point{{Tokens: 200, Loss: 2.5}, {Tokens: 300, Loss: 1.25}}; !slices.Equal(have, want) {
		t.Errorf("%v, want %v", have, want)
	}
}
