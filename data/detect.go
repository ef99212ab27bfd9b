package data

import (
	"bytes"
	"errors"
	"fmt"
)

// bom is the UTF-8 byte-order mark.
const bom = "\xef\xbb\xbf"

// foreign names the forms of file that cannot be read as text, by their first bytes.
var foreign = []struct{ magic, name, advice string }{
	{"\xff\xfe\x00\x00", "UTF-32 text", "convert it to UTF-8 (iconv -f UTF-32 -t UTF-8)"},
	{"\x00\x00\xfe\xff", "UTF-32 text", "convert it to UTF-8 (iconv -f UTF-32 -t UTF-8)"},
	{"\xff\xfe", "UTF-16 text", "convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"},
	{"\xfe\xff", "UTF-16 text", "convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"},
	{"\x1f\x8b", "a gzip archive", "unpack it first (gunzip, or tar -xzf)"},
	{"PK\x03\x04", "a zip archive", "unpack it first (unzip)"},
	{"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it first (unzstd)"},
	{"\xfd7zXZ\x00", "an xz archive", "unpack it first (unxz)"},
	{"PAR1", "a Parquet file", "convert it to JSONL with a \"text\" field first"},
}

// refuse tells why the beginning of a file shows that it is not text of the kind that is read here.
func refuse(head []byte) error {
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return fmt.Errorf("is %s: %s", f.name, f.advice)
		}
	}
	// UTF-16 without a mark: in Western text every other byte is zero.
	const enough = 16
	sample := head[:min(len(head), 4096)&^1]
	var zeros [2]int
	for i, b := range sample {
		if b == 0 {
			zeros[i%2]++
		}
	}
	half := len(sample) / 2
	for odd, order := range []string{"BE", "LE"} {
		if half >= enough && zeros[odd]*10 >= half*8 && zeros[1-odd]*10 <= half {
			return fmt.Errorf("is UTF-16 text without a byte-order mark: convert it to UTF-8 (iconv -f UTF-16%s -t UTF-8)",
				order)
		}
	}
	if at := bytes.IndexByte(head, 0); at >= 0 {
		return fmt.Errorf("is no text but binary: byte %d of it is zero; give a text or JSON file", at)
	}
	if odd := controls(sample); len(sample) > 0 && odd*20 > len(sample) {
		return fmt.Errorf("is no text but binary: %d of its first %d bytes are control characters; give a text or JSON file",
			odd, len(sample))
	}
	if len(bytes.Trim(head, blanks)) == 0 && len(head) < detectWindow {
		return errors.New("has no text in it: give a file with stories")
	}
	return nil
}

// controls counts the control characters that do not occur in text: all but tab, line ends, form feed, backspace and
// escape.
func controls(sample []byte) (n int) {
	for _, b := range sample {
		if b < 0x20 && bytes.IndexByte([]byte("\t\n\v\f\r\b\x1b"), b) < 0 || b == 0x7f {
			n++
		}
	}
	return n
}

// detectWindow is how much of the beginning of a file detection looks at.
const detectWindow = 64 << 10

// detect tells the kind of a file from its first bytes, the byte-order mark taken off, and whether a delimiter stands
// anywhere in it. What starts like JSON is JSON: a '[' followed by '{', '"' or ']', or a '{' followed by a key.
func detect(head []byte, delimiter bool) Kind {
	head = bytes.TrimLeft(head, blanks)
	rest := bytes.TrimLeft(head[min(1, len(head)):], blanks)
	starts := func(with string) bool { return len(rest) > 0 && bytes.IndexByte([]byte(with), rest[0]) >= 0 }
	switch {
	case len(head) > 0 && head[0] == '[' && starts(`{"]`):
		return KindJSON
	case len(head) > 0 && head[0] == '{' && starts(`"}`):
		return KindJSONL
	case delimiter:
		return KindDelimited
	}
	return KindText
}
