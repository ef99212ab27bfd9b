package data

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// write puts content into a file of a temporary folder.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKindsAndOddFiles(t *testing.T) {
	long := strings.Repeat("long ", 200_000)
	long = long[:len(long)-1]
	const d = Delimiter
	for _, c := range []struct {
		name, content string
		kind          Kind
		want          []string
	}{
		{"official", "One.\nTwo.\n" + d + "\nThree.\n" + d + "\n", KindDelimited, []string{"One.\nTwo.", "Three."}},
		{"no last delimiter", "One.\n" + d + "\nTwo.", KindDelimited, []string{"One.", "Two."}},
		{"two delimiters in a row", d + "One.\n" + d + "\n" + d + d + "Two." + d, KindDelimited, []string{"One.", "Two."}},
		{"delimiter in a line", "One." + d + "Two.", KindDelimited, []string{"One.", "Two."}},
		{"almost a delimiter", "One <|endoftext| >" + d + "<|endoftext|", KindDelimited,
			[]string{"One <|endoftext| >", "<|endoftext|"}},
		{"blank lines inside", "One.\n\nTwo.\n" + d + "\n", KindDelimited, []string{"One.\n\nTwo."}},
		{"CRLF", "One.\r\nTwo.\r\n" + d + "\r\nThree\r.\r\r\n" + d + "\r\n", KindDelimited, []string{"One.\nTwo.", "Three\r."}},
		{"byte-order mark", bom + "One." + d + bom + "Two.", KindDelimited, []string{"One.", bom + "Two."}},
		{"not UTF-8", "On\xe9.\xff\xfe" + d + "\x80\x01", KindDelimited, []string{"On\xe9.\xff\xfe", "\x80\x01"}},
		{"a story of 1 MB", "One." + d + long + d + "Two.", KindDelimited, []string{"One.", long, "Two."}},
		{"delimiter across blocks", strings.Repeat("x", firstWindow-5) + d + "Two.", KindDelimited,
			[]string{strings.Repeat("x", firstWindow-5), "Two."}},
		{"late delimiter", strings.Repeat("word\n\n", 100_000) + d + "Two.", KindDelimited,
			[]string{strings.TrimSpace(strings.Repeat("word\n\n", 100_000)), "Two."}},
		{"one story", "One.", KindText, []string{"One."}},
		{"paragraphs", "One,\none.\n\nTwo.\n \t\r\n\n\nThree.\n", KindText, []string{"One,\none.", "Two.", "Three."}},
		{"paragraphs, CRLF", "\r\nOne.\r\n\r\nTwo.\r\n", KindText, []string{"One.", "Two."}},
		{"text with a bracket", "[Chapter 1]\n\nOne.", KindText, []string{"[Chapter 1]", "One."}},
		{"text with a brace", "{ sigh }", KindText, []string{"{ sigh }"}},
		{"array", `[{"story": "One."}, {"text":"Two.", "x": [1, {"story": "no"}, null, true, -1.5e3]} ,{"text":""}]`,
			KindJSON, []string{"One.", "Two."}},
		{"array of strings", "\n [\n\"One.\",\n\"Two.\"]\n", KindJSON, []string{"One.", "Two."}},
		{"story wins", `[{"text":"no","story":"One."},{"story":"Two.","text":"no"},{"story":"Two.","text":"no"}]`, KindJSON,
			[]string{"One.", "Two.", "Two."}},
		{"lines", "{\"text\":\"One.\"}\r\n\n{\"story\":\"Two.\"}\n{\"text\":null}", KindJSONL, []string{"One.", "Two."}},
		{"lines, byte-order mark", bom + "{\"text\":\"One.\"}\n\"Two.\"", KindJSONL, []string{"One.", "Two."}},
		{"escapes", `{"text":"a\"\\\/\b\f\n\r\t.\u00e9\u20AC\ud83d\ude00\ud83d\ud83d\ude00\ud83dx\ude00\ud83d\n\ud83d"}`, KindJSONL,
			[]string{"a\"\\/\b\f\n\r\t.é€😀\ufffd😀\ufffdx\ufffd\ufffd\n\ufffd"}},
		{"JSON, CRLF inside", `{"text":"  One.\r\nTwo.\n"}`, KindJSONL, []string{"One.\nTwo."}},
		{"JSON with a delimiter", `{"text":"One.` + d + `Two."}`, KindJSONL, []string{"One." + d + "Two."}},
		{"JSON not UTF-8", "{\"text\":\"On\xe9\xff\"}", KindJSONL, []string{"On\xe9\xff"}},
		{"a long string", `{"text":"` + long + `","more":"` + long + `"}`, KindJSONL, []string{long}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, "corpus", c.content)
			corpus, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := corpus.Info().Kind; got != c.kind {
				t.Errorf("kind %s, want %s", got, c.kind)
			}
			if got := corpus.Info().Bytes; got != int64(len(c.content)) {
				t.Errorf("%d bytes, want %d", got, len(c.content))
			}
			for range 2 {
				if got := collect(t, corpus); !reflect.DeepEqual(got, c.want) {
					t.Errorf("stories %.200q, want %.200q", got, c.want)
				}
			}
		})
	}
}

func TestRefusedWhenOpened(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"empty", "", "is empty"},
		{"blank", " \r\n\n\t", "has no text"},
		{"UTF-16 LE", "\xff\xfeO\x00n\x00e\x00", "UTF-16"},
		{"UTF-16 BE", "\xfe\xff\x00O\x00n\x00e", "UTF-16"},
		{"UTF-16 LE without mark", strings.Repeat("O\x00n\x00e\x00 \x00", 40), "iconv -f UTF-16LE"},
		{"UTF-16 BE without mark", strings.Repeat("\x00O\x00n\x00e\x00 ", 40), "iconv -f UTF-16BE"},
		{"UTF-32", "\xff\xfe\x00\x00O\x00\x00\x00", "UTF-32"},
		{"gzip", "\x1f\x8b\x08\x00", "unpack"},
		{"zip", "PK\x03\x04", "unpack"},
		{"parquet", "PAR1\x00", "Parquet"},
		{"a program", "\x7fELF\x02\x01\x01\x00\x00\x00", "binary: byte 7 of it is zero"},
		{"a zero in the text", "One." + Delimiter + "T\x00wo.", "binary: byte 18 of it is zero"},
		{"a late zero in the first block", strings.Repeat("word\n", 10_000) + "\x00", "binary: byte 50000"},
		{"a zero in JSON", "{\"text\":\"One\x00.\"}", "binary"},
		{"binary without a zero", strings.Repeat("\x01\x8f\x02\xe3w", 40), "80 of its first 200 bytes are control characters"},
	} {
		path := write(t, "corpus.txt", c.content)
		_, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want one with %q and the path", c.name, err, c.want)
		}
	}
	dir := t.TempDir()
	inside := filepath.Join(dir, "stories.txt")
	if err := os.WriteFile(inside, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "is a directory") || !strings.Contains(err.Error(), inside) {
		t.Errorf("directory: error %v, want one that names a file inside", err)
	}
	if _, err := Open(filepath.Join(dir, "no")); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("missing file: error %v", err)
	}
	if _, err := Open(""); err == nil {
		t.Error("an empty path is accepted")
	}
	if _, err := Open(os.DevNull); err == nil || !strings.Contains(err.Error(), "device") {
		t.Errorf("device: error %v", err)
	}
	if os.Getuid() != 0 {
		os.Chmod(inside, 0)
		if _, err := Open(inside); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("unreadable file: error %v", err)
		}
	}
}

func TestRefusedWhenRead(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"only delimiters", Delimiter + "\n" + Delimiter, ErrNoStories.Error()},
		{"empty array", "[]", ErrNoStories.Error()},
		{"empty record", "{}", "without a \"story\" or \"text\" field"},
		{"other fields", "{\"text\":\"a\"}\n\n {\"body\":\"b\"}", "line 3, byte 15: a record without"},
		{"cut short", "[{\"text\":\"a\"},\n{\"text\":\"b", "line 2, byte 25: the file ends inside a string"},
		{"cut in array", "[{\"text\":\"a\"},", "the file ends inside an array"},
		{"cut in number", `{"a":`, "the file ends inside a record"},
		{"number for text", "{\"text\":12}", "byte 8: field \"text\" must be a string"},
		{"word for text", "{\"text\":nil}", "must be a string"},
		{"no comma", `[{"text":"a"} {"text":"b"}]`, "',' or ']' is wanted"},
		{"no colon", `{"text" "b"}`, "':' is wanted"},
		{"no key", `{"text":"a",}`, "a key in double quotes is wanted"},
		{"last comma", `["a",]`, "a record is wanted"},
		{"number as record", `{"text":"a"} 12`, "a record is wanted"},
		{"bad escape", `{"text":"\q"}`, "unknown escape"},
		{"bad hex", `{"text":"\u12g4"}`, "hexadecimal"},
		{"raw newline", "{\"text\":\"a\nb\"}", "byte 0x0a inside a string"},
		{"bad word", `{"x":truth,"text":"a"}`, "no JSON value"},
		{"bad number", `{"x":01,"text":"a"}`, "no JSON value"},
		{"long number", `{"x":` + strings.Repeat("1", 2000) + `,"text":"a"}`, "number"},
		{"after the array", `["a"] x`, "after the end of the array"},
		{"deep", `{"x":` + strings.Repeat("[", 100_000), "nested deeper"},
	} {
		corpus, err := Open(write(t, "corpus", c.content))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		err = corpus.Stories(context.Background(), func([]byte) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), corpus.Info().Path) {
			t.Errorf("%s: error %v, want one with %q and the path", c.name, err, c.want)
		}
	}
}

func TestLimitNamesTheOffset(t *testing.T) {
	story := strings.Repeat("x", 100)
	for _, c := range []struct {
		kind          Kind
		content, want string
	}{
		{KindDelimited, "One." + Delimiter + story, ""},
		{KindDelimited, "One." + Delimiter + story + Delimiter, ""},
		{KindDelimited, "One." + Delimiter + story + "x", "byte 20"},
		{KindDelimited, "One." + Delimiter + story + "x" + Delimiter, "byte 20"},
		{KindText, "One.\n\n" + story + "\n\n", ""},
		{KindText, "One.\n\n" + story + "x\n\n", "byte 9"},
		{KindJSONL, `{"text":"` + story + `"}`, ""},
		{KindJSONL, "\n" + `{"text":"` + story + `x"}`, "line 2, byte 12"},
	} {
		for name, r := range readers(c.content) {
			err := readStories(r, c.kind, 3, 100, func([]byte) error { return nil })
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, %s: error %v, want %q", c.kind, name, err, c.want)
			}
		}
	}
}

// readers give the same content in different portions.
func readers(content string) map[string]io.Reader {
	return map[string]io.Reader{
		"whole":    strings.NewReader(content),
		"one byte": iotest.OneByteReader(strings.NewReader(content)),
		"halves":   iotest.HalfReader(strings.NewReader(content)),
		"with EOF": iotest.DataErrReader(strings.NewReader(content)),
		"blocks":   &blocks{[]byte(content), 3},
	}
}

// blocks is a reader of uneven portions.
type blocks struct {
	rest []byte
	n    int
}

func (b *blocks) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	b.n = b.n*7%61 + 1
	n := copy(p[:min(len(p), b.n)], b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// readAll gives all that reading yields, the error as text included.
func readAll(r io.Reader, kind Kind) []string {
	var out []string
	err := readStories(r, kind, 0, 5000, func(s []byte) error {
		out = append(out, string(s))
		return nil
	})
	return append(out, fmt.Sprint("error: ", err))
}

func FuzzReading(f *testing.F) {
	for _, s := range []string{"", "One.\r\n" + Delimiter + "\n" + Delimiter + "<|endof", "a\n \t\r\n\nb\r\n\r\n", bom + "x",
		`[{"story":"a\ud83d\ude00","x":[1,{"y":null}]},"b"]`, "{\"text\":\"a\"}\n{\"text\":null}", `{"text":"\ud83d`, "\xff\xfe\x00",
		"[[[[", `{"a":1e5}`, strings.Repeat(" \n", 50)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, kind := range []Kind{KindDelimited, KindText, KindJSON, KindJSONL} {
			whole := readAll(bytes.NewReader(content), kind)
			for name, r := range readers(string(content)) {
				if got := readAll(r, kind); !reflect.DeepEqual(got, whole) {
					t.Fatalf("%s, %s: %q, whole: %q", kind, name, got, whole)
				}
			}
			for _, s := range whole[:len(whole)-1] {
				if s == "" || s != string(clean([]byte(s))) || strings.Contains(s, "\r\n") {
					t.Fatalf("%s: story %q is not clean", kind, s)
				}
				if kind == KindDelimited && strings.Contains(s, Delimiter) {
					t.Fatalf("a delimiter is left in %q", s)
				}
			}
			if kind == KindDelimited && !bytes.ContainsRune(content, '\r') && len(content) < 5000 {
				var want []string
				for s := range strings.SplitSeq(string(content), Delimiter) {
					if s = strings.Trim(s, blanks); s != "" {
						want = append(want, s)
					}
				}
				if !reflect.DeepEqual(whole[:len(whole)-1], append([]string{}, want...)) {
					t.Fatalf("stories %q, want %q", whole, want)
				}
			}
		}
		// A value is one here when it is one to encoding/json; only nesting and numbers are bounded more tightly.
		l := newJSONLexer(bytes.NewReader(content), 0, 1<<20)
		err := l.skip(0)
		if _, more := l.space(); err == nil && more {
			err = errors.New("more follows")
		}
		if (err == nil) != json.Valid(content) && len(content) < maxScalar {
			t.Fatalf("%q: error %v, valid to encoding/json: %v", content, err, json.Valid(content))
		}
	})
}

// Strings mean what they mean to encoding/json.
func FuzzJSONStrings(f *testing.F) {
	for _, s := range []string{`"a"`, `"\u00e9\ud83d\ude00"`, `"\ud83d\ud83d\ude00\ude00x\ud83d"`, `"\"\\\/\b\f\n\r\t"`, `"a`, `"\x"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l := newJSONLexer(iotest.OneByteReader(strings.NewReader(s)), 0, 1<<20)
		var got []byte
		b, _ := l.space()
		err := errors.New("no string")
		if b == '"' {
			if got, err = l.str(nil, true); err == nil {
				if _, more := l.space(); more {
					err = errors.New("more follows")
				}
			}
		}
		var want string
		wantErr := json.Unmarshal([]byte(s), &want)
		if b != '"' && wantErr == nil {
			return // null
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: error %v, encoding/json: %v", s, err, wantErr)
		}
		if err == nil && strings.ToValidUTF8(string(got), "\ufffd") != strings.ToValidUTF8(want, "\ufffd") &&
			bytes.ContainsFunc(got, func(r rune) bool { return r == '\ufffd' }) == false {
			t.Fatalf("%q is %q, encoding/json: %q", s, got, want)
		}
	})
}

func TestStoppingAndErrors(t *testing.T) {
	path := write(t, "c.txt", "One.\n\nTwo.\n\nThree.")
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Corpus{c, Builtin(1, 10), Split(Builtin(1, 10), false)} {
		own := errors.New("own")
		n := 0
		if err := c.Stories(context.Background(), func([]byte) error { n++; return own }); err != own || n != 1 {
			t.Errorf("%s: error %v after %d stories, want the callback's own after 1", c.Info().Path, err, n)
		}
		if err := c.Stories(context.Background(), func([]byte) error { return ErrStop }); err != nil {
			t.Errorf("%s: ErrStop gives %v", c.Info().Path, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		n = 0
		err := c.Stories(ctx, func([]byte) error { n++; cancel(); return nil })
		if !errors.Is(err, context.Canceled) || n != 1 {
			t.Errorf("%s: error %v after %d stories, want a cancelled context after 1", c.Info().Path, err, n)
		}
	}
	if err := os.WriteFile(path, []byte("One.\n\nTwo.\n\nThree!"), 0o644); err != nil {
		t.Fatal(err)
	}
	err = c.Stories(context.Background(), func([]byte) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "changed while it was in use") {
		t.Errorf("a changed file: error %v", err)
	}
	os.Remove(path)
	if err = c.Stories(context.Background(), func([]byte) error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a removed file: error %v", err)
	}
}

// Memory stays bounded: a large file is read in a small window.
func TestMemoryIsBounded(t *testing.T) {
	content := &endless{unit: []byte("A short story.\n" + Delimiter + "\n"), left: 64 << 20}
	largest := 0
	r := &meter{content, &largest}
	if err := split(r, 0, MaxStory, atDelimiter, func([]byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if largest > firstWindow {
		t.Errorf("a read of %d bytes was asked for, the window has %d", largest, firstWindow)
	}
}

type endless struct {
	unit []byte
	left int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n+len(e.unit) <= len(p) {
		n += copy(p[n:], e.unit)
	}
	if n == 0 {
		n = copy(p, e.unit)
		e.unit = append(e.unit[n:len(e.unit):len(e.unit)], e.unit[:n]...)
	}
	e.left -= n
	return n, nil
}

// meter notes the largest portion asked for.
type meter struct {
	io.Reader
	largest *int
}

func (m *meter) Read(p []byte) (int, error) {
	*m.largest = max(*m.largest, len(p))
	return m.Reader.Read(p)
}
