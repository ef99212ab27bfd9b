package cost

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/targets"
)

func esp32s3(t *testing.T) *targets.Target {
	t.Helper()
	x, err := targets.Load("esp32s3")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Figures that gave parameters their values come out as published; every other lies within 5 %, but for those named here.
func TestPublished(t *testing.T) {
	list, err := Predict(esp32s3(t))
	if err != nil {
		t.Fatal(err)
	}
	off := map[string]bool{"2 bits in place of 4": true}
	calibrates := 0
	for _, p := range list {
		t.Logf("%-45s %8.2f %8.2f %+6.1f %% %s", p.What, p.Published, p.Model, p.Percent, p.Use)
		switch {
		case p.Use == Calibrates:
			calibrates++
			if math.Abs(p.Percent) > 0.1 {
				t.Errorf("%s: %.3f, calibrated by %.3f: the target's calibrated figures are not those that fit", p.What, p.Model, p.Published)
			}
		case p.Off() != off[p.What]:
			t.Errorf("%s: %.3f, published %.3f, %+.1f %%; named as missed: %v", p.What, p.Model, p.Published, p.Percent, off[p.What])
		}
	}
	if calibrates != parameters || len(list) < 3*parameters {
		t.Errorf("%d of %d figures calibrate %d parameters", calibrates, len(list), parameters)
	}
	n := 0
	study := esp32s3(t).Profile(PublishedProfile)
	for _, k := range study.Kernels {
		if k.Kind == "calibrated" {
			n++
		}
	}
	for _, f := range []targets.Figure{study.Reads.Rows, study.Reads.Neurons, study.HandOver, study.Fixed.UsPerLayer, study.Fixed.UsPerToken,
		esp32s3(t).Memory(image.PSRAM).SequentialMBs, esp32s3(t).Memory(image.PSRAM).Faster.Times} {
		if f.Kind == "calibrated" {
			n++
		}
	}
	if n != parameters {
		t.Errorf("%d figures of the target are calibrated, %d parameters are owned to", n, parameters)
	}
}

// The published counts of parameters hold the shapes: esp32-ai's to the last one; of the others one decimal of the millions,
// without the norms.
func TestPublishedShapes(t *testing.T) {
	for name, want := range map[string]string{"combo": "3.4M", "wide-ple": "4.9M", "varC": "8.6M", "v16384": "16.0M", "esp32-ai": "28.9M"} {
		c, err := shape(name)
		if err != nil {
			t.Fatal(err)
		}
		n := c.Parameters()
		if name == "esp32-ai" && n != 28869920 {
			t.Errorf("%s has %d parameters", name, n)
		}
		for _, x := range c.Tensors() {
			if x.Class == configs.ClassNorm {
				n -= x.Len()
			}
		}
		if got := fmt.Sprintf("%.1fM", float64(n)/1e6); got != want {
			t.Errorf("%s has %s parameters in matrices, published %s", name, got, want)
		}
	}
}

func TestPredictElsewhere(t *testing.T) {
	host, err := targets.Load("host")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Predict(host); err == nil || !strings.Contains(err.Error(), `no profile "study"`) {
		t.Errorf("%v", err)
	}
	slow := *esp32s3(t)
	slow.Memories = append([]targets.Memory(nil), slow.Memories...)
	slow.Memory(image.PSRAM).Faster = nil
	if _, err := Predict(&slow); err == nil || !strings.Contains(err.Error(), "no faster psram") {
		t.Errorf("%v", err)
	}
}

// docs/cost.md shows the table that the command prints.
func TestDocsShowTheTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	list, err := Predict(esp32s3(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		row := fmt.Sprintf("| %s | %s | %s | %.2f | %.2f | %+.1f %% | %s |", p.What, p.Positions, p.Unit, p.Published, p.Model, p.Percent, p.Use)
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/cost.md lacks\n%s", row)
		}
	}
}

// The command that docs/cost.md gives as the nearest to a published figure gives the figure beside it.
func TestDocsNearestCommand(t *testing.T) {
	text, err := os.ReadFile("../../docs/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "    chiplm cost combo.yaml --profile study ")
	line, _, ok := strings.Cut(after, "\n\n")
	if !ok {
		t.Fatal("docs/cost.md has no such command")
	}
	args := append([]string{"combo.yaml", "--profile", "study"}, strings.Fields(strings.ReplaceAll(line, "\\\n", " "))...)
	out, _, err := execute(t, append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("project's buffers, %.2f ms:", r.Cost.MeanMs); !strings.Contains(string(text), want) {
		t.Errorf("docs/cost.md lacks %q", want)
	}
}
