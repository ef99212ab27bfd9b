package export

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestImageDump(t *testing.T) {
	path, b := imageFile(t)
	x := &b.Model.Tensors[0]
	for _, name := range []string{"text", "csv"} {
		text, _, err := run(t, ImageCommand(), "dump", path, x.Name, "--format", name, "--rows", "2:5")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if len(lines) != 3 {
			t.Fatalf("%s: %d lines", name, len(lines))
		}
		for i, line := range lines {
			f := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' })
			if len(f) != x.Cols {
				t.Fatalf("%s: %d numbers in a row of %d", name, len(f), x.Cols)
			}
			for c, s := range f {
				if v, err := strconv.ParseFloat(s, 32); err != nil || float32(v) != x.Value(2+i, c) {
					t.Fatalf("%s [%d,%d]: %s, want %v", name, 2+i, c, s, x.Value(2+i, c))
				}
			}
		}
	}
	text, _, err := run(t, ImageCommand(), "dump", path, x.Name, "--json", "--part", "scales", "--rows", ":1")
	if err != nil {
		t.Fatal(err)
	}
	var j struct {
		Columns int         `json:"columns"`
		Data    [][]float32 `json:"data"`
	}
	if err := json.Unmarshal([]byte(text), &j); err != nil || j.Columns != x.Groups() || j.Data[0][1] != x.Scale(0, 1) {
		t.Errorf("%v %+v", err, j)
	}
	text, _, err = run(t, ImageCommand(), "dump", path, x.Name, "--format", "raw", "--rows", "1:2")
	if err != nil || text != string(x.Codes[x.Stride():2*x.Stride()]) {
		t.Errorf("raw: %d bytes, %v", len(text), err)
	}
	text, _, err = run(t, ImageCommand(), "dump", path, "CONF")
	if err != nil || text != string(b.Model.Config) {
		t.Errorf("CONF: %v %q", err, text)
	}
	text, _, err = run(t, ImageCommand(), "dump", path, "TOKN", "--format", "hex")
	if err != nil || !strings.HasPrefix(text, "00000000  01 00 00 00") {
		t.Errorf("TOKN: %v %.40q", err, text)
	}
}

// The header of NumPy's format 1.0, as its page describes it: magic, version, length, a dictionary, a multiple of 64.
func TestImageDumpNPY(t *testing.T) {
	path, b := imageFile(t)
	x := &b.Model.Tensors[0]
	for part, kind := range map[string]string{"codes": "|i1", "values": "<f4"} {
		out := filepath.Join(t.TempDir(), "x.npy")
		if _, _, err := run(t, ImageCommand(), "dump", path, x.Name, "--part", part, "--format", "npy", "--out", out); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		n := 10 + int(binary.LittleEndian.Uint16(got[8:]))
		want := "{'descr': '" + kind + "', 'fortran_order': False, 'shape': (270, 40), }"
		if !bytes.HasPrefix(got, []byte("\x93NUMPY\x01\x00")) || n%64 != 0 || got[n-1] != '\n' ||
			strings.TrimSpace(string(got[10:n])) != want {
			t.Fatalf("%s: header %q", part, got[:n])
		}
		for i := range x.Parameters() {
			r, c := i/x.Cols, i%x.Cols
			if part == "codes" {
				if int(int8(got[n+i])) != x.Code(r, c) {
					t.Fatalf("code %d", i)
				}
			} else if math.Float32frombits(binary.LittleEndian.Uint32(got[n+4*i:])) != x.Value(r, c) {
				t.Fatalf("value %d", i)
			}
		}
		if len(got) != n+x.Parameters()*map[string]int{"codes": 1, "values": 4}[part] {
			t.Errorf("%s: %d bytes", part, len(got))
		}
	}
}

func TestImageDumpRefuses(t *testing.T) {
	path, _ := imageFile(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"layers.9.qkv"}, "chiplm image info lists them"},
		{[]string{"ple_table", "--format", "png"}, "unknown format"},
		{[]string{"ple_table", "--part", "bits"}, "unknown part"},
		{[]string{"ple_table", "--rows", "5:2"}, "0 <= FROM < TO <= 270"},
		{[]string{"ple_table", "--rows", "5"}, "FROM:TO"},
		{[]string{"output_norm", "--part", "codes"}, "no codes"},
		{[]string{"output_norm", "--part", "scales"}, "no scales"},
		{[]string{"MODL", "--format", "csv"}, "raw or hex"},
		{[]string{"ple_table", "--out", "/nonexistent/folder/x"}, "nonexistent"},
	} {
		_, _, err := run(t, ImageCommand(), append([]string{"dump", path}, c.args...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
}
