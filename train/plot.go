package train

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/chiplm/chiplm/data/regular"
)

// PlotFile is the name of a run's loss curve.
const PlotFile = "loss.png"

// PlotLoss draws the bits per byte of training and validation over the tokens seen, from a run's metrics, into the
// run's directory.
func PlotLoss(dir, title string, records []Record) error {
	train, valid := curves(records)
	if len(train) == 0 {
		return errors.New("plot the loss: the metrics hold no training step")
	}
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "training tokens (millions)"
	p.Y.Label.Text = "bits per byte"
	p.Add(plotter.NewGrid())
	line, err := plotter.NewLine(train)
	if err != nil {
		return fmt.Errorf("plot the loss: %w", err)
	}
	line.Color = color.RGBA{R: 0x1f, G: 0x77, B: 0xb4, A: 0xff}
	line.Width = vg.Points(1)
	p.Add(line)
	p.Legend.Add("training (running mean)", line)
	if len(valid) > 0 {
		vline, points, err := plotter.NewLinePoints(valid)
		if err != nil {
			return fmt.Errorf("plot the loss: %w", err)
		}
		vline.Color = color.RGBA{R: 0xd6, G: 0x27, B: 0x28, A: 0xff}
		vline.Width = vg.Points(1.5)
		points.Color, points.Shape, points.Radius = vline.Color, draw.CircleGlyph{}, vg.Points(2.5)
		p.Add(vline, points)
		p.Legend.Add("held-out", vline, points)
	}
	p.Legend.Top, p.Legend.XOffs, p.Legend.Padding = true, vg.Points(-8), vg.Points(2)
	low, high := bounds(train, valid)
	p.Y.Min, p.Y.Max = low, high

	var png bytes.Buffer
	w, err := p.WriterTo(vg.Points(560), vg.Points(360), "png")
	if err == nil {
		_, err = w.WriteTo(&png)
	}
	if err != nil {
		return fmt.Errorf("plot the loss: %w", err)
	}
	if err := regular.WriteFile(filepath.Join(dir, PlotFile), png.Bytes()); err != nil {
		return fmt.Errorf("plot the loss: %w", err)
	}
	return nil
}

// curves picks the points out of the metrics; the training curve is a running mean over up to twenty steps, fewer in a
// short run.
func curves(records []Record) (train, valid plotter.XYs) {
	mean, weight := 0.0, 0.0
	fresh := 1 / min(max(float64(len(records))/50, 1), 20)
	for _, r := range records {
		x := float64(r.Tokens) / 1e6
		if r.BPB != nil {
			mean, weight = mean+(*r.BPB-mean)*fresh, weight+(1-weight)*fresh
			train = append(train, plotter.XY{X: x, Y: mean / weight})
		}
		if r.ValidBPB != nil {
			valid = append(valid, plotter.XY{X: x, Y: *r.ValidBPB})
		}
	}
	return train, valid
}

// bounds chooses the vertical range: the fall of the first steps is cut off, so that what follows can be read.
func bounds(train, valid plotter.XYs) (low, high float64) {
	shown := train[len(train)/20:]
	low, high = shown[0].Y, shown[0].Y
	for _, xys := range []plotter.XYs{shown, valid} {
		for _, xy := range xys {
			low, high = min(low, xy.Y), max(high, xy.Y)
		}
	}
	margin := max((high-low)*0.05, 0.01)
	return low - margin, high + margin
}
