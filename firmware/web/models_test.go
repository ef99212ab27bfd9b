package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/cost"
	"github.com/chiplm/chiplm/export/parts"
	"github.com/chiplm/chiplm/firmware/host"
	"github.com/chiplm/chiplm/firmware/host/line"
	"github.com/chiplm/chiplm/firmware/host/virtual"
	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

// printed is what a command prints.
func printed(t *testing.T, ctx context.Context, c *cobra.Command, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(new(bytes.Buffer))
	c.SetArgs(args)
	if err := c.ExecuteContext(ctx); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// told is an entry as the page reads it.
type told struct {
	entry
	Facts map[string]any  `json:"facts"`
	Cost  json.RawMessage `json:"cost"`
}

// same says whether two texts are the same JSON.
func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y bytes.Buffer
	if err := json.Compact(&x, a); err != nil {
		t.Fatalf("%v\n%s", err, a)
	}
	if err := json.Compact(&y, b); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

// check holds an entry against the files that are served: every hash is that of the bytes, the digest that of the engine.
func (s *served) check(e *told) {
	t := s.t
	t.Helper()
	file := func(url, sha string, bytes int) []byte {
		t.Helper()
		answer, b := s.get(url)
		if answer.StatusCode != http.StatusOK || hashOf(b) != sha || len(b) != bytes {
			t.Errorf("%s: %s, %d bytes, SHA-256 %s; %d and %s were told", url, answer.Status, len(b), hashOf(b), bytes, sha)
		}
		return b
	}
	images := [][]byte{file(e.Image, e.SHA256, e.Bytes)}
	if b := e.Board[targetName]; b != nil {
		image := file(b.Image, b.SHA256, b.Bytes)
		images = append(images, image)
		if b.Manifest != "" {
			_, text := s.get(b.Manifest)
			var m export.Manifest
			if err := json.Unmarshal(text, &m); err != nil || m.Files[export.ImageFile].SHA256 != b.SHA256 || m.Target != targetName {
				t.Errorf("%s: %v: %+v", b.Manifest, err, m)
			}
			answer, text := s.get(b.Placement)
			if answer.StatusCode != http.StatusOK || hashOf(text) != m.Files[export.PlacementJSON].SHA256 {
				t.Errorf("%s: %s", b.Placement, answer.Status)
			}
		}
	}
	for _, b := range images {
		im, err := engine.NewImage(b)
		if err != nil {
			t.Fatal(err)
		}
		defer im.Close()
		d, err := host.Digest(im, e.Digest.N)
		if err != nil || e.Digest.Value != digestText(uint64(d)) {
			t.Errorf("%s: digest %+v, want %#x (%v)", e.Name, e.Digest, uint64(d), err)
		}
	}
}

// A released model is there at once; what goes on the chip is there when it is made, equal to what chiplm export writes, with
// what chiplm cost prints. The board gives the digest that was told.
func TestReleasedModels(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx := store(t, t.Context())
	folder := tinymodel.Release(t)
	s := serve(t, ctx)
	var list []told
	s.decode("models.json", &list)
	if len(list) != 1 || list[0].Name != "tiny" || list[0].Source != "released/tiny" || list[0].Image != "models/tiny/model.clm" {
		t.Fatalf("%+v", list)
	}
	s.check(&list[0])
	facts, err := os.ReadFile(filepath.Join(folder, released.FactsFile))
	if err != nil {
		t.Fatal(err)
	}
	var known map[string]any
	if err := json.Unmarshal(facts, &known); err != nil {
		t.Fatal(err)
	}
	if a, b := list[0].Facts, known; a["model_sha256"] != b["model_sha256"] || a["golden_digest"] != b["golden_digest"] || len(a) != len(b) {
		t.Errorf("facts %v, want %v", a, b)
	}
	if list[0].Digest.N != 32 { // the context of the model
		t.Errorf("a digest of %d tokens", list[0].Digest.N)
	}

	var whole told
	s.decode("models/tiny/model.json", &whole)
	s.check(&whole)
	if b := whole.Board[targetName]; b == nil || b.Image != "models/tiny/esp32s3/model.clm" || b.Manifest == "" || b.Placement == "" || b.Offset != 0xD0000 || whole.Refused != "" {
		t.Fatalf("%+v", whole)
	}
	out := filepath.Join(t.TempDir(), "exported")
	printed(t, ctx, export.Command(), "released/tiny", "--target", targetName, "--out", out)
	exported, err := os.ReadFile(filepath.Join(out, export.ImageFile))
	if err != nil {
		t.Fatal(err)
	}
	if hashOf(exported) != whole.Board[targetName].SHA256 {
		t.Error("the image for the chip is not that of chiplm export")
	}
	if want := printed(t, ctx, cost.Command(), "released/tiny", "--json"); !same(t, whole.Cost, []byte(want)) {
		t.Errorf("cost %s\nwant %s", whole.Cost, want)
	}
	var now []told
	s.decode("models.json", &now)
	if !slices.EqualFunc(now, []told{whole}, func(a, b told) bool {
		return a.Board[targetName] != nil && *a.Board[targetName] == *b.Board[targetName] && same(t, a.Cost, b.Cost)
	}) {
		t.Errorf("models.json is not complete: %+v", now)
	}

	b, err := virtual.Start(virtual.Options{Model: filepath.Join(out, export.ImageFile)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c := client(t, b)
	for mode := range line.ModesCount {
		if d, err := c.Digest(t.Context(), whole.Digest.N, mode); err != nil || digestText(d) != whole.Digest.Value {
			t.Errorf("mode %d of a board: %#x, %v, want %s", mode, d, err, whole.Digest.Value)
		}
	}
	work := s.workFolders()
	s.end()
	for _, dir := range work {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

// All that a user may name is served under a name of its own, in the order of the command line.
func TestNamedModels(t *testing.T) {
	run := tinymodel.Run(t)
	exported, hosted, image := tinymodel.Export(t, targetName, nil), tinymodel.Export(t, "host", nil), tinymodel.Image(t, "d_ff=64")
	alone := filepath.Join(t.TempDir(), "my model.clm")
	b, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(alone, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, store(t, t.Context()), run, exported, alone, "tiny", hosted)
	var list []told
	s.decode("models.json", &list)
	names := []string{"tiny-run", "tiny", "my-model", "tiny-2", "tiny-3"}
	if len(list) != len(names) {
		t.Fatalf("%+v", list)
	}
	for i, name := range names {
		var e told
		s.decode("models/"+name+"/model.json", &e)
		if list[i].Name != name || e.Name != name || e.Facts["parameters"] == nil || e.Facts["model_sha256"] == nil || e.Facts["context_length"] != 32.0 {
			t.Errorf("%d: %+v", i, e)
		}
		if _, scored := e.Facts["score"]; scored != (name == "tiny-2") {
			t.Errorf("%s: score %v", name, scored)
		}
		s.check(&e)
		onChip, manifest := name != "tiny-3", name != "my-model"
		if (e.Board != nil) != onChip || (e.Cost != nil && string(e.Cost) != "null") != onChip || (e.Refused == "") != onChip || onChip && (e.Board[targetName].Manifest != "") != manifest {
			t.Errorf("%s: board %+v, refused %q", name, e.Board, e.Refused)
		}
	}
	if answer, b := s.get("models/tiny-3/esp32s3/model.clm"); answer.StatusCode != http.StatusNotFound || !strings.Contains(string(b), "host") {
		t.Errorf("an image for a host on a chip: %s: %s", answer.Status, b)
	}
	if answer, b := s.get("models/my-model/esp32s3/manifest.json"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("the manifest of an image alone: %s: %s", answer.Status, b)
	}
	var e told
	s.decode("models/tiny/model.json", &e)
	if want := printed(t, t.Context(), cost.Command(), exported, "--json"); !same(t, e.Cost, []byte(want)) {
		t.Errorf("cost of an export: %s\nwant %s", e.Cost, want)
	}
	s.decode("models/tiny-run/model.json", &e)
	if want := printed(t, t.Context(), cost.Command(), e.Source, "--json"); !strings.HasPrefix(e.Source, run) || !same(t, e.Cost, []byte(want)) {
		t.Errorf("cost of a run: %s\nwant %s", e.Cost, want)
	}
}

// A model that is named twice, in whatever ways, is there once; and of a run it is told which checkpoint was taken.
func TestNamedTwice(t *testing.T) {
	image, trained := tinymodel.Image(t), tinymodel.Run(t)
	checkpoint, err := checkpoints.Resolve("", trained)
	if err != nil {
		t.Fatal(err)
	}
	link, err := filepath.Rel(must(os.Getwd()), image)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, store(t, t.Context()), "tiny", image, "released/tiny", checkpoint, link, filepath.Dir(image), checkpoint+"/")
	var list []told
	s.decode("models.json", &list)
	if len(list) != 3 {
		t.Errorf("%d models", len(list))
	}
	s.end()
	if notes := s.notes.String(); strings.Count(notes, "is there already, as") != 4 || !strings.Contains(notes, "of step ") {
		t.Error(notes)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A model that has no room on the chip runs in the browser all the same, and the page is told why it goes nowhere else.
func TestTooLarge(t *testing.T) {
	s := serve(t, t.Context(), "--firmware", buildFolder(t, "model,0x40,0,0xD0000,4K"), tinymodel.Run(t))
	var e told
	s.decode("models/tiny-run/model.json", &e)
	if e.Board != nil || string(e.Cost) != "null" || !strings.HasPrefix(e.Refused, "tiny-run-esp32s3/model.clm does not fit") {
		t.Errorf("%+v", e)
	}
	s.check(&e)
}

// Firmware is told and served as chiplm flash would write it, and models lie where its table has room for them.
func TestFirmware(t *testing.T) {
	dir := buildFolder(t, "model,0x40,0,0x210000,4M")
	s := serve(t, t.Context(), "--firmware", dir, tinymodel.Image(t))
	var fw firmware
	s.decode("firmware.json", &fw)
	offsets := map[string]uint32{"bootloader": 0, "partition table": 0x8000, "firmware": 0x10000}
	if fw.Chip != targetName || len(fw.Files) != len(offsets) || len(fw.Partitions) != 3 || fw.Partitions[2] != (partition{"model", 0x40, 0, 0x210000, 4 << 20}) {
		t.Fatalf("%+v", fw)
	}
	for _, f := range fw.Files {
		answer, b := s.get(f.URL)
		if answer.StatusCode != http.StatusOK || hashOf(b) != f.SHA256 || int64(len(b)) != f.Bytes || f.Offset != offsets[f.Name] {
			t.Errorf("%+v: %s, %d bytes", f, answer.Status, len(b))
		}
	}
	var e told
	s.decode("models/tiny/model.json", &e)
	if b := e.Board[targetName]; b == nil || b.Offset != 0x210000 {
		t.Errorf("%+v, %s", b, e.Refused)
	}
	s.end()

	chip, err := parts.ChipNamed(targetName)
	if err != nil {
		t.Fatal(err)
	}
	built, err := parts.OpenFirmware(dir, chip)
	if err != nil {
		t.Fatal(err)
	}
	carrying := serve(t, t.Context(), tinymodel.Image(t, "d_ff=64"), tinymodel.Export(t, targetName, built))
	var same firmware
	carrying.decode("firmware.json", &same)
	if !reflect.DeepEqual(same, fw) {
		t.Errorf("firmware in an export: %+v, want %+v", same, fw)
	}
	carrying.end()

	none := serve(t, t.Context(), tinymodel.Image(t))
	if _, b := none.get("firmware.json"); string(b) != "null\n" {
		t.Errorf("no firmware: %s", b)
	}
	if _, _, err := execute(t, t.Context(), dist, "--firmware", t.TempDir(), "--no-open"); err == nil || !strings.Contains(err.Error(), "idf.py build") {
		t.Errorf("an empty folder of firmware: %v", err)
	}
	if _, _, err := execute(t, t.Context(), dist, "--firmware", buildFolder(t, "other,0x40,0,0xD0000,4K"), "--no-open"); err == nil || !strings.Contains(err.Error(), "model") {
		t.Errorf("another's firmware: %v", err)
	}
}

func TestUnique(t *testing.T) {
	var there []*model
	for _, c := range [][2]string{{"combo", "combo"}, {"combo", "combo-2"}, {"Combo", "Combo-3"}, {"a b/ü", "a-b-"}, {"../..", "model"}, {"", "model-2"}, {".hidden", "hidden"}, {"x\x00y", "x-y"}} {
		got := unique(c[0], there)
		if got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
		there = append(there, &model{name: got})
	}
}

// An export whose image was removed is told as one.
func TestExportWithoutImage(t *testing.T) {
	dir := tinymodel.Export(t, targetName, nil)
	if err := os.Remove(filepath.Join(dir, export.ImageFile)); err != nil {
		t.Fatal(err)
	}
	_, _, err := execute(t, t.Context(), dist, dir, "--no-open", "--listen", "127.0.0.1:0")
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), export.ImageFile) {
		t.Errorf("%v", err)
	}
}
