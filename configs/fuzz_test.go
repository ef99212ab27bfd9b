package configs

import (
	"reflect"
	"testing"
)

// Parse never panics, and what it accepts is valid and survives the way through its canonical text.
func FuzzParse(f *testing.F) {
	for _, name := range Builtin() {
		text, err := BuiltinSource(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "d_ff=64")
	}
	for _, text := range []string{small, "", "extends: combo", "{", "a: b: c", "? {? ", "|0#", "'", "\"\\x", "a:\n- b\n c", "{a: {b", "&0: *0", "0::", "--- %", "- - - -",
		"extends: combo\nquant: {classes: {trunk: {bits: 2}}}\nname: \"1e5\"", "a: \r\n  b:\r", "extends: combo\nnorm_eps: 1e-7 # x", "\t", "a: >\n>"} {
		f.Add([]byte(text), "quant.classes.trunk.bits=2")
	}
	f.Add([]byte("extends: combo"), "={")
	f.Add([]byte("extends: combo"), "train={lr: 1}")
	f.Fuzz(func(t *testing.T, text []byte, set string) {
		if _, err := Parse("fuzz.yaml", text); err != nil {
			_ = err.Error()
		}
		c, err := Parse("fuzz.yaml", text, set)
		if err != nil {
			_ = err.Error()
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("accepted, yet not valid: %v", err)
		}
		canonical, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("other.yaml", canonical)
		if err != nil {
			t.Fatalf("%v\n%s", err, canonical)
		}
		if !reflect.DeepEqual(c, back) {
			t.Fatalf("have %+v\nwant %+v", back, c)
		}
	})
}
