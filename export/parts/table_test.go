package parts

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/export/targets"
)

const boardCSV = `# a board with 16 MB
# Name,   Type, SubType, Offset,   Size,    Flags
nvs,      data, nvs,     0x9000,   24K,
phy_init, data, phy,     ,         0x1000,
factory,  app,  factory, ,         1M,
model,    0x40, 0x00,    0x110000, 0xEF0000, readonly
`

func board(t *testing.T) Table {
	t.Helper()
	table, err := ParseCSV([]byte(boardCSV))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestCSV(t *testing.T) {
	want := Table{
		{"nvs", TypeData, 2, 0x9000, 0x6000, 0},
		{"phy_init", TypeData, 1, 0xf000, 0x1000, 0},
		{"factory", TypeApp, 0, 0x10000, 0x100000, 0},
		{"model", 0x40, 0, 0x110000, 0xEF0000, 2},
	}
	got := board(t)
	text, err := os.ReadFile("../../firmware/" + CSVFile)
	if err != nil {
		t.Fatal(err)
	}
	firmware, err := ParseCSV(text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	if app := got.FirstApp(); app == nil || app.Name != "factory" {
		t.Errorf("the application goes to %+v", app)
	}
	chip, err := targets.Load("esp32s3")
	if err != nil {
		t.Fatal(err)
	}
	m, app := firmware.Find(ModelPartition), firmware.FirstApp()
	if int64(m.Offset) != chip.Flash.ModelOffset || int64(m.Size) != chip.Flash.ModelBytes || int64(app.Size) != chip.Flash.AppBytes {
		t.Errorf("the target's partitions are elsewhere: %+v, %+v", chip.Flash, firmware)
	}
}

// An entry is magic, type, subtype, offset, size, name and flags, as the framework documents.
func TestBinaryForm(t *testing.T) {
	b := board(t).Binary()
	want := "aa50" + "01" + "02" + "00900000" + "00600000" + hex.EncodeToString([]byte("nvs")) + strings.Repeat("00", 13) + "00000000"
	if got := hex.EncodeToString(b[:32]); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	// MD5 of the four entries, as the framework's own tool writes it; all its bytes were equal to these.
	if got := hex.EncodeToString(b[4*32 : 5*32]); got != "ebeb"+strings.Repeat("ff", 14)+"b108a1a4e600e4e44845b1c48de8207c" {
		t.Errorf("checksum entry %s", got)
	}
	if len(b) != TableBytes || !bytes.Equal(b[5*32:], bytes.Repeat([]byte{0xff}, TableBytes-5*32)) {
		t.Error("the rest is not 0xFF")
	}
	back, err := ParseBinary(b)
	if err != nil || !reflect.DeepEqual(back, board(t)) {
		t.Errorf("%v, %+v", err, back)
	}
}

// Any byte of an entry or of the checksum that changes is found; bytes behind the end are not looked at.
func TestDamagedBinary(t *testing.T) {
	b := board(t).Binary()
	for at := range 5 * 32 {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			c := bytes.Clone(b)
			c[at] ^= flip
			if table, err := ParseBinary(c); err == nil {
				t.Errorf("byte %d changed by %#x: read as %+v", at, flip, table)
			} else if !errors.Is(err, ErrTable) {
				t.Error(err)
			}
		}
	}
	for n := range 5 * 32 {
		if _, err := ParseBinary(b[:n]); !errors.Is(err, ErrTable) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	if _, err := ParseBinary(bytes.Repeat([]byte{0xff}, TableBytes)); !errors.Is(err, ErrTable) {
		t.Errorf("erased flash: %v", err)
	}
	if _, err := ParseBinary(bytes.Repeat(b[:32], TableBytes/32)); !errors.Is(err, ErrTable) {
		t.Errorf("no end: %v", err)
	}
}

func TestCSVRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"":                                           "no entry",
		"a,app":                                      "line 1: 2 fields",
		"a,app,factory,0x10000,1M,,x":                "7 fields",
		"a,b,factory,0x10000,1M":                     `type "b"`,
		"a,app,,0x10000,1M":                          "needs a subtype",
		"a,app,ota_16,0x10000,1M":                    "ota_0 to ota_15",
		"a,data,what,0x9000,4K":                      `subtype "what"`,
		"a,0xff,0,0x9000,4K":                         "type",
		"a,data,nvs,0x9000,":                         "size",
		"a,data,nvs,0x9000,-4K":                      "size",
		"a,data,nvs,0x9000,0":                        "no bytes",
		"a,data,nvs,0x9000,99M":                      "size",
		"a,data,nvs,0x9000,4K,red":                   `flag "red"`,
		"a,data,nvs,0x8000,4K":                       "the table itself",
		"a,data,nvs,0x9001,4K":                       "no multiple",
		"a,app,factory,0x11000,4K":                   "no multiple",
		"a,data,nvs,0x9000,31M\nb,data,nvs,,4M":      "past",
		"a,data,nvs,0x9000,8K\nb,data,nvs,0xa000,4K": "b starts at 0xa000 and a ends at 0xb000",
		"a,data,nvs,0x9000,4K\na,data,nvs,,4K":       "two partitions are named a",
		"abcdefghijklmnop,data,nvs,0x9000,4K":        "name",
		"a\x01,data,nvs,0x9000,4K":                   "name",
	} {
		_, err := ParseCSV([]byte(text))
		if !errors.Is(err, ErrTable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	many := new(strings.Builder)
	for i := range 95 {
		many.WriteString(strings.Repeat("x", i%15+1) + string(rune('a'+i/15)) + ",data,nvs,,4K\n")
	}
	if _, err := ParseCSV([]byte(many.String())); !errors.Is(err, ErrTable) {
		t.Errorf("95 entries: %v", err)
	}
}

// What is read is written as it was, whatever the bytes.
func FuzzTables(f *testing.F) {
	table, err := ParseCSV([]byte(boardCSV))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(boardCSV), table.Binary()[:6*32])
	f.Fuzz(func(t *testing.T, csv, binary []byte) {
		for _, read := range []func() (Table, error){
			func() (Table, error) { return ParseCSV(csv) },
			func() (Table, error) { return ParseBinary(binary) },
		} {
			table, err := read()
			if err != nil {
				if !errors.Is(err, ErrTable) {
					t.Error(err)
				}
				continue
			}
			if back, err := ParseBinary(table.Binary()); err != nil || !reflect.DeepEqual(back, table) {
				t.Errorf("%+v becomes %+v, %v", table, back, err)
			}
		}
	})
}
