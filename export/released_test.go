package export

import (
	"bytes"
	"context"
	"testing"

	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/export/image"
)

// A model that was released before model files got a key exports to an image that passes every check of today: its
// configuration is written anew, and codes, scales and golden stay.
func TestReleasedBeforeAKey(t *testing.T) {
	b := build(t, checkpoint(t, config(t)), Options{})
	old := *b.Model
	old.Config = bytes.Replace(b.Model.Config, []byte("experts: 0\n"), nil, 1)
	if bytes.Equal(old.Config, b.Model.Config) {
		t.Fatalf("the configuration has no such key: %s", b.Model.Config)
	}
	file, err := image.Encode(&old)
	if err != nil {
		t.Fatal(err)
	}
	m := &released.Model{Source: "released/tiny", Image: file, Config: old.Config}
	m.Name = b.Config.Name
	again, err := BuildReleased(context.Background(), m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Bytes, b.Bytes) {
		t.Error("the image is not the one that the checkpoint gives today")
	}
	_, results, err := image.Check(bytes.NewReader(again.Bytes), int64(len(again.Bytes)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}
