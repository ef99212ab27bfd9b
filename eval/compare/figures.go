package compare

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours that stand for those of the page, light or dark, and are put in their place in the finished drawing.
var (
	ink    = color.RGBA{R: 0x01, G: 0x02, B: 0x03, A: 0xff}
	pale   = color.RGBA{R: 0x04, G: 0x05, B: 0x06, A: 0xff}
	accent = color.RGBA{R: 0x07, G: 0x08, B: 0x09, A: 0xff}
	themed = strings.NewReplacer("#010203", "currentColor", "#040506", "var(--pale)", "#070809", "var(--accent)")
)

// hues are of middle lightness, to be seen on white and on black. More arms than hues get the same again, dashed. Neither
// red nor grey is among them: these say who is on the front and who is not.
var hues = []color.RGBA{
	{0x3b, 0x82, 0xc4, 0xff}, {0xe0, 0x7b, 0x39, 0xff}, {0x3f, 0x9e, 0x5a, 0xff}, {0x8f, 0x6f, 0xc4, 0xff},
	{0x9c, 0x6b, 0x4e, 0xff}, {0xd4, 0x65, 0xa8, 0xff}, {0xa3, 0x9a, 0x1f, 0xff}, {0x2a, 0xa5, 0xb5, 0xff},
}

// grey is what arms off the front are drawn in, with bars and leaders of names.
var grey = color.RGBA{0x7a, 0x82, 0x88, 0xff}

// dashes of a line, by how often the hues have been used up.
var dashes = [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 2, 2, 2}}

const (
	lineHeight = 13.0 // of labels, in points
	labelSize  = 10.5
	labelChars = 20  // columns of a name beside a plot
	otherFonts = 1.1 // a page may be shown in a wider font than that which measured the names
)

var sans = font.Font{Typeface: "Liberation", Variant: "Sans", Size: labelSize}

func label(c color.Color, x text.XAlignment) text.Style {
	return text.Style{Color: c, Font: sans, XAlign: x, YAlign: draw.YCenter, Handler: plot.DefaultTextHandler}
}

// drawing is a plot with what a page says about it.
type drawing struct {
	Title, Caption string
	SVG            template.HTML
}

func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = pale, pale
	p.Add(grid)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color = ink, ink
		axis.Label.TextStyle.Color, axis.Tick.Label.Color = ink, ink
		axis.Label.TextStyle.Font, axis.Tick.Label.Font = sans, sans
		axis.Tick.Marker = plot.TickerFunc(ticks)
	}
	p.X.Label.Text, p.Y.Label.Text = x, y
	return p
}

// svg finishes a drawing for a page: in its colours and as wide as there is room, with a title for those who do not see it.
func svg(c *vgsvg.Canvas, title string) (template.HTML, error) {
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", err
	}
	_, body, _ := strings.Cut(b.String(), "<svg")
	_, body, _ = strings.Cut(body, ">")
	w, h := c.Size()
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %g %g" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="%s">`,
		w.Points(), h.Points(), html.EscapeString(title)) + themed.Replace(body)), nil
}

// curves draws the training loss of every arm, with its name beside its end; nil when no run kept its loss.
func (r *Report) curves() (*drawing, error) {
	type line struct {
		name string
		xys  plotter.XYs
	}
	nats := r.oneTokenizer()
	var lines []line
	for i := range r.Arms {
		a := &r.Arms[i]
		l, unit := line{name: a.Name}, 1.0
		if !nats {
			unit = a.perByte()
		}
		for _, p := range a.curve() {
			l.xys = append(l.xys, plotter.XY{X: float64(p.Tokens) / 1e6, Y: p.Loss * unit})
		}
		if len(l.xys) > 0 {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	d := &drawing{Title: "Training loss", Caption: "Smoothed, mean over the runs of an arm, in nats per token. Colours only tell the arms apart. The fall of the first quarter is cut off."}
	y := "nats per token"
	if !nats {
		y = "bits per byte"
		d.Caption = "Smoothed, mean over the runs of an arm. Tokenizers differ, so it is in bits per byte, by the bytes that a token stands for in the held-out text. " +
			"Colours only tell the arms apart. The fall of the first quarter is cut off."
	}
	p := newPlot("training tokens (millions)", y)
	low, high := math.Inf(1), math.Inf(-1)
	for i, l := range lines {
		drawn, err := plotter.NewLine(l.xys)
		if err != nil {
			return nil, fmt.Errorf("draw the loss of %s: %w", l.name, err)
		}
		drawn.Color, drawn.Width, drawn.Dashes = hues[i%len(hues)], 1.3, dashes[i/len(hues)%len(dashes)]
		p.Add(drawn)
		for _, xy := range l.xys[len(l.xys)/4:] {
			low, high = min(low, xy.Y), max(high, xy.Y)
		}
	}
	margin := max((high-low)*0.04, 1e-3)
	p.Y.Min, p.Y.Max = low-margin, high+margin

	const width, names = 900, 175
	height := max(430, lineHeight*float64(len(lines))+90)
	canvas := vgsvg.New(width, vg.Length(height))
	all := draw.New(canvas)
	area := draw.Crop(all, 4, -names, 4, -8)
	p.Draw(area)
	data := p.DataCanvas(area)
	tx, ty := p.Transforms(&data)
	wanted := make([]float64, len(lines))
	for i, l := range lines {
		wanted[i] = ty(l.xys[len(l.xys)-1].Y).Points()
	}
	at := spread(wanted, lineHeight, data.Min.Y.Points(), data.Max.Y.Points())
	for i, l := range lines {
		end, to := l.xys[len(l.xys)-1], vg.Point{X: data.Max.X + 42, Y: vg.Length(at[i])}
		style := draw.LineStyle{Color: hues[i%len(hues)], Width: 1.3, Dashes: dashes[i/len(hues)%len(dashes)]}
		all.StrokeLines(style, []vg.Point{{X: tx(end.X), Y: vg.Length(wanted[i])}, {X: data.Max.X + 32, Y: to.Y}, to})
		all.FillText(label(ink, draw.XLeft), vg.Point{X: to.X + 3, Y: to.Y}, short(l.name, labelChars))
	}
	var err error
	d.SVG, err = svg(canvas, "Training loss of every arm")
	return d, err
}

// scatter draws bits per byte against bytes of text per second, and the Pareto front; nil when no speed is predicted.
func (r *Report) scatter() (*drawing, error) {
	on := map[string]bool{}
	for _, name := range r.Pareto {
		on[name] = true
	}
	p := newPlot("bytes of text per second (predicted)", "bits per byte")
	var front, others plotter.XYs
	var shown []Arm
	for _, first := range []bool{true, false} { // names of the front find their places first
		for _, a := range r.Arms {
			if a.TextPerSecond > 0 && on[a.Name] == first {
				shown = append(shown, a)
			}
		}
	}
	if len(shown) == 0 {
		return nil, nil
	}
	for _, name := range r.Pareto {
		for _, a := range shown {
			if a.Name == name {
				if n := len(front); n > 0 { // what is better than the faster one is no longer reached beyond its own speed
					front = append(front, plotter.XY{X: front[n-1].X, Y: a.BitsPerByte.Mean})
				}
				front = append(front, plotter.XY{X: a.TextPerSecond, Y: a.BitsPerByte.Mean})
			}
		}
	}
	for _, a := range shown {
		others = append(others, plotter.XY{X: a.TextPerSecond, Y: a.BitsPerByte.Mean})
		if s := a.score.values; len(s) > 1 {
			bar, err := plotter.NewLine(plotter.XYs{{X: a.TextPerSecond, Y: slices.Min(s)}, {X: a.TextPerSecond, Y: slices.Max(s)}})
			if err != nil {
				return nil, fmt.Errorf("draw the runs of %s: %w", a.Name, err)
			}
			bar.Color, bar.Width = grey, 1
			p.Add(bar)
		}
	}
	points, err := plotter.NewScatter(others)
	if err != nil {
		return nil, fmt.Errorf("draw the arms: %w", err)
	}
	points.GlyphStyleFunc = func(i int) draw.GlyphStyle {
		if on[shown[i].Name] {
			return draw.GlyphStyle{Color: accent, Radius: 4, Shape: draw.CircleGlyph{}}
		}
		return draw.GlyphStyle{Color: grey, Radius: 3.5, Shape: draw.CircleGlyph{}}
	}
	p.Add(points)
	roomy(&p.X)
	roomy(&p.Y)
	if n := len(front); n > 0 {
		// The best arm is that for every slower speed, and beyond the fastest is none: so the line goes on to the edges, and is
		// seen where the arms of the front lie close together or are one.
		front = slices.Concat(plotter.XYs{{X: p.X.Min, Y: front[0].Y}}, front, plotter.XYs{{X: front[n-1].X, Y: p.Y.Max}})
		step, err := plotter.NewLine(front)
		if err != nil {
			return nil, fmt.Errorf("draw the front: %w", err)
		}
		step.Color, step.Width = accent, 1.5
		p.Add(step)
	}

	const width = 900
	height := max(520, 14*float64(len(shown))+200)
	canvas := vgsvg.New(width, vg.Length(height))
	all := draw.Crop(draw.New(canvas), 4, -8, 4, -8)
	p.Draw(all)
	data := p.DataCanvas(all)
	tx, ty := p.Transforms(&data)
	var spots []spot
	var widths []float64
	for _, a := range shown {
		spots = append(spots, spot{tx(a.TextPerSecond).Points(), ty(a.BitsPerByte.Mean).Points()})
		widths = append(widths, label(ink, draw.XLeft).Width(short(a.Name, labelChars)).Points()*otherFonts+4)
	}
	// Names keep off the front, and off the bars.
	var lines []box
	for i := 1; i < len(front); i++ {
		lines = append(lines, around(tx(front[i-1].X), ty(front[i-1].Y), tx(front[i].X), ty(front[i].Y)))
	}
	for _, a := range shown {
		x := tx(a.TextPerSecond)
		lines = append(lines, around(x, ty(slices.Min(a.score.values)), x, ty(slices.Max(a.score.values))))
	}
	inside := box{data.Min.X.Points() + 2, data.Min.Y.Points() + 2, data.Max.X.Points() - 2, data.Max.Y.Points() - 2}
	labels, ok := place(spots, widths, lineHeight, inside, lines)
	for i, b := range labels {
		if !ok[i] {
			continue
		}
		s := spots[i]
		near := spot{min(max(s.x, b.x0), b.x1), min(max(s.y, b.y0), b.y1)}
		if math.Hypot(near.x-s.x, near.y-s.y) > 9 {
			all.StrokeLine2(draw.LineStyle{Color: grey, Width: 0.6}, vg.Length(s.x), vg.Length(s.y), vg.Length(near.x), vg.Length(near.y))
		}
		c := color.Color(ink)
		if on[shown[i].Name] {
			c = accent
		}
		all.FillText(label(c, draw.XLeft), vg.Point{X: vg.Length(b.x0 + 2), Y: vg.Length((b.y0 + b.y1) / 2)}, short(shown[i].Name, labelChars))
	}
	d := &drawing{Title: "Quality and speed", Caption: "Lower is better, and farther right is faster. The line is the Pareto front, the least bits per byte of any arm that is so fast: no arm is both better and faster than " +
		strings.Join(r.Pareto, ", ") + ". The others are grey. A bar spans the runs of an arm."}
	if n := len(r.Arms) - len(shown); n > 0 {
		d.Caption += fmt.Sprintf(" %d without a predicted speed are not drawn.", n)
	}
	d.SVG, err = svg(canvas, "Bits per byte against bytes of text per second, with the Pareto front")
	return d, err
}

// around is the room of a line that runs along an axis.
func around(x0, y0, x1, y1 vg.Length) box {
	return box{min(x0, x1).Points() - 1.5, min(y0, y1).Points() - 1.5, max(x0, x1).Points() + 1.5, max(y0, y1).Points() + 1.5}
}

// ticks are some six round values, each with as many digits as it takes to tell it from the next.
func ticks(low, high float64) []plot.Tick {
	rough := (high - low) / 6
	unit := math.Pow(10, math.Floor(math.Log10(rough)))
	step := unit
	for _, by := range []float64{2, 5, 10} {
		if step < rough {
			step = by * unit
		}
	}
	digits := max(0, -int(math.Floor(math.Log10(step*1.0001))))
	const slack = 1e-6 // of a step, for what rounding does to the ends
	first := math.Ceil(low/step - slack)
	var list []plot.Tick
	for i := range 12 {
		v := (first + float64(i)) * step
		if v > high+slack*step {
			break
		}
		text := strconv.FormatFloat(v, 'f', digits, 64)
		if len(text) > 9 {
			text = strconv.FormatFloat(v, 'g', 4, 64)
		}
		list = append(list, plot.Tick{Value: v, Label: text})
	}
	return list
}

// roomy widens the range of an axis, so that names fit beside the outermost points.
func roomy(a *plot.Axis) {
	margin := max((a.Max-a.Min)*0.1, math.Abs(a.Max)*1e-3, 1e-9)
	a.Min, a.Max = a.Min-margin, a.Max+margin
}
