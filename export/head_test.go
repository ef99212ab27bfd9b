package export

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/clusters"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/placement"
)

func TestClustersSurviveTheImage(t *testing.T) {
	for _, sets := range [][]string{nil, {"tie_embeddings=false"}, {"quant.weights.scale=f16", "quant.weights.bits=8"}} {
		ck := checkpoint(t, config(t, sets...))
		b := build(t, ck, Options{Clusters: 20, Target: chip(t)})
		if b.Model.Sizes.Clusters != 20 || b.Measured == nil || b.Measured.Head.Clusters != 20 || b.Measured.Head.Rows <= 0 || b.Layout.Measured != b.Measured {
			t.Fatalf("%v: %d clusters, measured %+v", sets, b.Model.Sizes.Clusters, b.Measured)
		}
		path := filepath.Join(t.TempDir(), "model.clm")
		if err := os.WriteFile(path, b.Bytes, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := image.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := headClusters(f)
		if err != nil {
			t.Fatal(err)
		}
		head, err := headMatrix(b.Config, ck.Tensors)
		if err != nil {
			t.Fatal(err)
		}
		plain := build(t, ck, Options{})
		own, err := writeText(context.Background(), plain.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		want, err := clusters.Make(head, clusters.Options{Count: 20, Hidden: own.moment, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v: the image gives other clusters than were made", sets)
		}
		r, err := checkFile(path)
		if err != nil || !r.Verified {
			t.Errorf("%v: %+v, %v", sets, r, err)
		}
		for i, x := range b.Model.Tensors {
			if x.Tier != b.Layout.Tensors[i].Tier || x.Name != b.Layout.Tensors[i].Name {
				t.Errorf("%s is planned for tier %v as %s", x.Name, b.Layout.Tensors[i].Tier, b.Layout.Tensors[i].Name)
			}
		}
	}
}

// TestWrongBoundIsFound lowers a norm, by which a bound no longer holds; the image is well formed.
func TestWrongBoundIsFound(t *testing.T) {
	b := build(t, checkpoint(t, config(t)), Options{Clusters: 20})
	for _, name := range []string{image.HeadBlocks0, image.HeadBlocks1, image.HeadBounds} {
		m := *b.Model
		m.Tensors = append([]image.Tensor{}, b.Model.Tensors...)
		for i := range m.Tensors {
			if x := &m.Tensors[i]; x.Name == name {
				x.Codes = append([]byte{}, x.Codes...)
				if name == image.HeadBounds { // all boxes
					at := image.BoundsBytes(m.Sizes.DModel, 20) - 4*21 - 8*20
					for c := range 20 {
						clear(x.Codes[at+8*c : at+8*c+8])
					}
				} else {
					for at := range m.Sizes.VocabSize {
						x.Codes[16*at+15] = 0
					}
				}
			}
		}
		path := filepath.Join(t.TempDir(), "model.clm")
		if err := image.WriteFile(path, &m); err != nil {
			t.Fatal(err)
		}
		r, err := checkFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, c := range r.Checks {
			found = found || c.Name == "bounds of the head" && !c.OK && strings.Contains(c.Error, "token ")
		}
		if r.Verified || !found {
			t.Errorf("%s: %+v", name, r.Checks)
		}
	}
}

// TestEveryTensorCanBeDumped asks for every part of every tensor, of an image with every kind of them, in every format:
// numbers or a refusal that says what to do, and never a panic.
func TestEveryTensorCanBeDumped(t *testing.T) {
	b := build(t, checkpoint(t, config(t, "experts=2")), Options{Clusters: 20})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ImageFile), b.Bytes, 0o644); err != nil {
		t.Fatal(err)
	}
	if text, _, err := run(t, ImageCommand(), "info", dir); err != nil || !strings.Contains(text, "20 clusters") || !strings.Contains(text, "by column") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, x := range b.Model.Tensors {
		for _, part := range dumpParts {
			for _, format := range dumpFormats {
				text, _, err := run(t, ImageCommand(), "dump", dir, x.Name, "--part", part, "--format", format)
				switch wrong := part != "values" && (x.Bits == 32 || x.Raw()); {
				case wrong && (err == nil || !strings.Contains(err.Error(), "use --part values")):
					t.Errorf("%s, %s as %s: %v", x.Name, part, format, err)
				case !wrong && (err != nil || len(text) == 0):
					t.Errorf("%s, %s as %s: %v", x.Name, part, format, err)
				}
			}
		}
	}
	text, _, err := run(t, ImageCommand(), "dump", dir, image.HeadOrder, "--rows", "0:1")
	if err != nil || len(strings.Fields(text)) != 16 {
		t.Errorf("the first ids: %q, %v", text, err)
	}
}

func TestClustersAreChosen(t *testing.T) {
	small := checkpoint(t, config(t))
	if b := build(t, small, Options{Clusters: AutoClusters}); b.Model.Sizes.Clusters != 0 || b.Measured.Head != nil {
		t.Errorf("a head of %d rows gets %d clusters by itself", b.Config.VocabSize, b.Model.Sizes.Clusters)
	}
	large := checkpoint(t, config(t, "vocab_size=1100", "d_model=16", "ple_dim=0"))
	b := build(t, large, Options{Clusters: AutoClusters})
	if b.Model.Sizes.Clusters != clusters.DefaultCount {
		t.Errorf("a head of %d rows gets %d clusters", b.Config.VocabSize, b.Model.Sizes.Clusters)
	}
	im, err := engine.NewImage(b.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	if im.Certified().Full {
		t.Error("the engine would read the whole head")
	}
	for _, n := range []int{-2, small.Config.VocabSize + 1} {
		if _, err := BuildImage(context.Background(), small, Options{Clusters: n}); err == nil || !strings.Contains(err.Error(), "impossible") {
			t.Errorf("%d clusters: %v", n, err)
		}
	}
	// A head without any range has no bounds, and stays whole.
	huge := checkpoint(t, config(t))
	for i := range huge.Tensors[configs.TokenEmbedding] {
		huge.Tensors[configs.TokenEmbedding][i] *= 0x1p-50
	}
	b = build(t, huge, Options{Clusters: 20})
	if b.Model.Sizes.Clusters != 0 || len(b.Notes) == 0 || !strings.Contains(strings.Join(b.Notes, " "), "without clusters") {
		t.Errorf("a head out of range: %d clusters, notes %q", b.Model.Sizes.Clusters, b.Notes)
	}
	if _, err := readClusters("many"); err == nil || errors.Is(err, image.ErrClusters) {
		t.Error(err)
	}
}

// TestOwnTextIsCounted: what is noted of the model's own text predicts what the engine read of up and down, to the byte.
func TestOwnTextIsCounted(t *testing.T) {
	for _, sets := range [][]string{nil, {"experts=3"}, {"d_ff=75", "quant.weights.group=32", "quant.weights.scale=f16"}} {
		ck := checkpoint(t, config(t, sets...))
		b := build(t, ck, Options{Measure: true})
		own, err := writeText(context.Background(), b.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if b.Measured.Head != nil || b.Measured.Tokens != ownTokens || len(b.Measured.Neurons) != b.Config.NLayers {
			t.Fatalf("%v: %+v", sets, b.Measured)
		}
		want := placement.Predict(b.Config, placement.Conditions{Layers: b.Measured.Neurons})
		for i, x := range b.Config.Tensors() {
			if _, part := configs.SplitTensor(x.Name); (part == configs.Up || part == configs.Down) && want.Tensors[i] != own.reads.Tensors[i] {
				t.Errorf("%v: %s: %d bytes were read, the notes predict %d", sets, x.Name, own.reads.Tensors[i], want.Tensors[i])
			}
		}
	}
	swiglu := build(t, checkpoint(t, config(t, "activation=swiglu")), Options{Measure: true})
	if swiglu.Measured != nil {
		t.Errorf("a model that reads everything: %+v", swiglu.Measured)
	}
}
