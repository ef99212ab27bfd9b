package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// fixture is what testdata/make.py stores.
func fixture() []Tensor {
	embedding := make([]float32, 12)
	for i := range embedding {
		embedding[i] = float32(i)/7 - 1
	}
	inf := float32(math.Inf(1))
	return []Tensor{
		{"token_embedding", []int{4, 3}, embedding},
		{"layers.0.qkv", []int{2, 4}, []float32{0, float32(math.Copysign(0, -1)), 1e-45, 3.4028235e38, inf, -inf, 1, -2.5}},
		{"output_norm", []int{5}, []float32{1, 1, 1, 1, 1}},
		{"scalar", []int{}, []float32{0.1}},
		{"empty", []int{0, 3}, []float32{}},
	}
}

func encode(t testing.TB, tensors []Tensor, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(file []byte) ([]Tensor, error) { return Read(bytes.NewReader(file), int64(len(file))) }

func bits(tensors []Tensor) map[string]any {
	m := map[string]any{}
	for _, t := range tensors {
		b := make([]uint32, len(t.Data))
		for i, v := range t.Data {
			b[i] = math.Float32bits(v)
		}
		m[t.Name] = []any{t.Shape, b}
	}
	return m
}

// A file written by the reference implementation holds these very bits.
func TestReadsThePythonFixture(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("testdata", "python.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(bits(got), bits(fixture())) {
		t.Errorf("have %v\nwant %v", bits(got), bits(fixture()))
	}
}

// ours.safetensors is our own output; make.py was run on it and found it equal to the reference's tensors.
func TestWritesWhatPythonRead(t *testing.T) {
	got := encode(t, fixture(), map[string]string{"format": "pt"})
	path := filepath.Join("testdata", "ours.safetensors")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the bytes have changed; check them with make.py before replacing %s", path)
	}
}

func TestRoundTrip(t *testing.T) {
	long := make([]float32, 3*chunk+5)
	for i := range long {
		long[i] = float32(i) * 0.25
	}
	tensors := append(fixture(), Tensor{"long \"quoted\" \u00e9 <&>", []int{1, len(long), 1}, long})
	file := encode(t, tensors, nil)
	if binary.LittleEndian.Uint64(file)%align != 0 {
		t.Error("the values are not aligned")
	}
	got, err := Read(iotest.OneByteReader(bytes.NewReader(file)), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(tensors) || !reflect.DeepEqual(bits(got), bits(tensors)) {
		t.Error("differs after a round trip")
	}
	if got, err := read(encode(t, nil, nil)); err != nil || len(got) != 0 {
		t.Errorf("no tensors: %v, %v", got, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, tensors := range map[string][]Tensor{
		"no name":     {{"", []int{1}, []float32{1}}},
		"reserved":    {{metadataKey, []int{1}, []float32{1}}},
		"twice":       {{"a", []int{1}, []float32{1}}, {"a", []int{1}, []float32{1}}},
		"wrong shape": {{"a", []int{2}, []float32{1}}},
		"negative":    {{"a", []int{-1, -1}, []float32{1}}},
		"overflow":    {{"a", []int{math.MaxInt, math.MaxInt}, []float32{1}}},
		"dimensions":  {{"a", make([]int, 9), nil}},
	} {
		if err := Write(io.Discard, tensors, nil); !errors.Is(err, ErrTensor) {
			t.Errorf("%s: have %v", name, err)
		}
	}
	for limit := range 3 {
		if err := Write(&failing{limit}, fixture()[:2], nil); !errors.Is(err, errFull) {
			t.Errorf("write %d fails: have %v", limit, err)
		}
	}
}

var errFull = errors.New("no space left")

type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if f.left--; f.left < 0 {
		return len(b) / 2, errFull
	}
	return len(b), nil
}

// raw builds a file from a header and a number of value bytes.
func raw(header string, values int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, values)...)
}

const one = `"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`

func TestReadRefuses(t *testing.T) {
	for _, test := range []struct {
		name string
		file []byte
		want error
	}{
		{"empty", nil, ErrSize},
		{"seven bytes", make([]byte, 7), ErrSize},
		{"no header", make([]byte, 8), ErrHeader},
		{"huge header", append(bytes.Repeat([]byte{0xff}, 8), '{', '}'), ErrHeader},
		{"header past the end", append([]byte{200, 0, 0, 0, 0, 0, 0, 0}, '{', '}'), ErrSize},
		{"not JSON", raw(`{"a":`, 0), ErrHeader},
		{"an array", raw(`[]`, 0), ErrHeader},
		{"leading space", raw(` {}`, 0), ErrHeader},
		{"text after it", raw(`{} {}`, 0), ErrHeader},
		{"not UTF-8", raw("{\"\xff\":1}", 0), ErrHeader},
		{"deep", raw(`{"a":`+strings.Repeat("[", 1<<20), 0), ErrHeader},
		{"twice", raw(`{`+one+`,`+one+`}`, 4), ErrHeader},
		{"twice in other letters", raw(`{`+one+`,"\u0061":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4), ErrHeader},
		{"other type", raw(strings.Replace("{"+one+"}", "F32", "F16", 1), 4), ErrType},
		{"unknown field", raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}`, 4), ErrHeader},
		{"no shape", raw(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4), ErrHeader},
		{"no range", raw(`{"a":{"dtype":"F32","shape":[1]}}`, 4), ErrHeader},
		{"three offsets", raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}}`, 4), ErrHeader},
		{"null", raw(`{"a":null}`, 0), ErrType},
		{"negative shape", raw(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4), ErrHeader},
		{"fraction", raw(`{"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}`, 4), ErrHeader},
		{"shape overflow", raw(`{"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]}}`, 0), ErrHeader},
		{"claims a petabyte", raw(`{"a":{"dtype":"F32","shape":[281474976710656],"data_offsets":[0,1125899906842624]}}`, 4), ErrHeader},
		{"shape and range differ", raw(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4), ErrHeader},
		{"backwards", raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}}`, 8), ErrHeader},
		{"below zero", raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}`, 4), ErrHeader},
		{"a hole", raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), ErrHeader},
		{"overlap", raw(`{`+one+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4), ErrHeader},
		{"too long", raw(`{`+one+`}`, 5), ErrSize},
		{"too short", raw(`{`+one+`}`, 3), ErrHeader},
		{"metadata of numbers", raw(`{"__metadata__":{"a":1}}`, 0), ErrHeader},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := read(test.file)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, test.want) {
				t.Errorf("have %v, %v; want %v", got, err, test.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
				t.Errorf("allocated %d bytes", used)
			}
		})
	}
	// A file that shrinks or grows while it is read.
	file := encode(t, fixture(), nil)
	if _, err := Read(bytes.NewReader(file[:len(file)-1]), int64(len(file))); !errors.Is(err, ErrSize) {
		t.Errorf("have %v", err)
	}
	if _, err := Read(bytes.NewReader(append(file, 0)), int64(len(file))); !errors.Is(err, ErrSize) {
		t.Errorf("have %v", err)
	}
}

// Every truncation is refused.
func TestTruncations(t *testing.T) {
	file := encode(t, fixture(), nil)
	for n := range len(file) {
		if _, err := read(file[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were accepted", n, len(file))
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(encode(f, fixture(), map[string]string{"a": "b"}))
	f.Add(raw(`{`+one+`}`, 4))
	f.Add(raw(`{"b":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},`+one+`}   `, 4))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := read(file)
		if err != nil {
			return
		}
		again, err := read(encode(t, got, nil))
		if err != nil || !reflect.DeepEqual(bits(got), bits(again)) {
			t.Fatalf("does not survive a round trip: %v", err)
		}
	})
}
