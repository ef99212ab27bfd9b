package export

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/export/image"
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

// Every section has a form in JSON: text as it is, bytes in base64.
func TestImageDumpSectionsAsJSON(t *testing.T) {
	path, b := imageFile(t)
	for _, name := range image.SectionNames() {
		raw, _, err := run(t, ImageCommand(), "dump", path, name, "--format", "raw")
		if err != nil {
			t.Fatal(err)
		}
		text, _, err := run(t, ImageCommand(), "dump", path, name, "--json")
		if err != nil {
			t.Fatal(err)
		}
		var j struct {
			Name, Encoding, Data string
			Bytes                int
		}
		if err := json.Unmarshal([]byte(text), &j); err != nil || j.Name != name || j.Bytes != len(raw) || !strings.HasPrefix(text, "{\n  \"") {
			t.Fatalf("%v %.80s", err, text)
		}
		if name == "CONF" {
			if j.Encoding != "text" || j.Data != string(b.Model.Config) {
				t.Errorf("CONF: %+v", j)
			}
			continue
		}
		if got, err := base64.StdEncoding.DecodeString(j.Data); err != nil || j.Encoding != "base64" || string(got) != raw {
			t.Errorf("%s: %v, %d bytes", name, err, len(got))
		}
	}
}

func TestCompletion(t *testing.T) {
	path, _ := imageFile(t)
	for _, c := range []struct {
		cmd  *cobra.Command
		args []string
		want []string
	}{
		{ImageCommand(), []string{"dump", path, ""}, []string{"CONF", "ple_table", "layers.1.qkv"}},
		{ImageCommand(), []string{"dump", path, "x", "--format", ""}, []string{"npy", "hex"}},
		{Command(), []string{"--target", ""}, []string{"esp32s3", "host"}},
	} {
		text, _, err := run(t, c.cmd, append([]string{cobra.ShellCompRequestCmd}, c.args...)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !strings.Contains("\n"+text, "\n"+w+"\n") {
				t.Errorf("%v: no %s in %s", c.args, w, text)
			}
		}
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
		{[]string{"MODL", "--format", "csv"}, "raw, hex or json"},
		{[]string{"MODL", "--rows", "0:1"}, "leave out --rows and --part"},
		{[]string{"MODL", "--part", "codes"}, "leave out --rows and --part"},
		{[]string{"ple_table", "--json", "--format", "csv"}, "give one of them"},
		{[]string{"ple_table", "--out", "/nonexistent/folder/x"}, "nonexistent"},
	} {
		_, _, err := run(t, ImageCommand(), append([]string{"dump", path}, c.args...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
}
