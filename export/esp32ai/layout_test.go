package esp32ai

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/chiplm/chiplm/export/esp32ai/testfile"
)

// docs/import.md describes the header well enough to write one: each field, at the offset and with the type of its table.
func TestDocsHeader(t *testing.T) {
	text, err := os.ReadFile("../../docs/import.md")
	if err != nil {
		t.Fatal(err)
	}
	s := testfile.Shape{InVocab: 300, OutVocab: 290, D: 32, Layers: 2, Heads: 4, F: 10, P: 6, Context: 20, Group: 16, Theta: 5000, Tied: true}
	values := []uint32{0x00454c50, 1, 56, 1, 300, 290, 32, 2, 4, 10, 6, 20, 16, math.Float32bits(5000)}
	made := make([]byte, 56)
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| [uif]32 \|`).FindAllSubmatch(text, -1)
	if len(rows) != len(values) {
		t.Fatalf("docs/import.md has %d fields, want %d", len(rows), len(values))
	}
	for i, row := range rows {
		at, err := strconv.Atoi(string(row[1]))
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint32(made[at:], values[i])
	}
	if file := testfile.Random(s, 1).Bytes(); !bytes.Equal(made, file[:56]) {
		t.Errorf("the header by docs/import.md is\n% x, the writer's\n% x", made, file[:56])
	}
	h, err := ParseHeader(made)
	if err != nil || h.InVocab != 300 || h.OutVocab != 290 || h.FFN != 10 || h.RopeTheta != 5000 || !h.Tied {
		t.Errorf("%+v, %v", h, err)
	}
}
