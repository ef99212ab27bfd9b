package board_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/export/image"
)

func TestMalformedRequestsAreRefused(t *testing.T) {
	_, path := model(t)
	c := start(t, "--model", path)
	long := "S 1 0 0 1 " + strings.Repeat("a", 4096)
	for request, code := range map[string]string{
		"g 1":                                "unknown",
		"GG 1 2":                             "unknown",
		" G 1":                               "unknown",
		" V":                                 "unknown",
		" ":                                  "unknown",
		"\xff":                               "not-ascii",
		"\x00":                               "not-ascii",
		"\x00V":                              "not-ascii",
		"V\x01":                              "not-ascii",
		"na\u00efve":                         "not-ascii",
		"S\x00":                              "not-ascii",
		"SS 1 2 3 4 \xff":                    "not-ascii",
		"S 1 0 0 \xff":                       "not-ascii",
		"G":                                  "missing",
		"G 1 2 3":                            "missing",
		"G 5 0 0 1 0 3 1 2":                  "missing",
		"G 5 0 0 1 0 0":                      "range",
		"G 5 0 0 1 0 0 1":                    "range",
		"G x 0 0 1 0 1 0":                    "number",
		"G -1 0 0 1 0 1 0":                   "number",
		"G 1.5 0 0 1 0 1 0":                  "number",
		"G 0x1 0 0 1 0 1 0":                  "number",
		"G  1 0 0 1 0 1 0":                   "number",
		"G 1 0 0 1 0 1 ":                     "number",
		"G 1000001 0 0 1 0 1 0":              "range",
		"G 1 1000001 0 1 0 1 0":              "range",
		"G 1 0 4294967296 1 0 1 0":           "range",
		"G 1 0 0 18446744073709551616 0 1 0": "range",
		"G 1 0 0 99999999999999999999999999999999999999 0 1 0": "range",
		"G 1 0 0 1 2 1 0":                           "range",
		"G 1 0 0 1 0 2 0 1040":                      "id",
		"G 1 0 0 1 0 2 0 4294967296":                "id",
		"G 1 0 0 1 0 1 -1":                          "number",
		"G 1 0 0 1 0 1 0 5":                         "extra",
		"G 1 0 0 1 0 49" + strings.Repeat(" 1", 49): "context",
		"G 1 0 0 1 0 4294967295 1":                  "context",
		"G 1 0 0 1 0 1 0\x00":                       "not-ascii",
		"G 1 0 0 1 0 1 \xc3\xa9":                    "not-ascii",
		"G 1 0 0 1 0\t1 0":                          "not-ascii",
		"S 1 0 0":                                   "missing",
		"S 1 0 0 x text":                            "number",
		"S 1 0 0 1\xff text":                        "not-ascii",
		"S 1 0 0 1 nul\x00":                         "not-ascii",
		`S 1 0 0 1 \q`:                              "escape",
		`S 1 0 0 1 \x4`:                             "escape",
		`S 1 0 0 1 \xg0`:                            "escape",
		`S 1 0 0 1 \`:                               "escape",
		"S 1 0 0 1 " + strings.Repeat("qx ", 40):    "context",
		long[:4097]:                                 "line-too-long",
		long + "\r":                                 "line-too-long",
		strings.Repeat("\x00", 20000):               "line-too-long",
		"D":                                         "missing",
		"D 0 0":                                     "range",
		"D 5 3":                                     "range",
		"D 49 0":                                    "context",
		"D 5 0 0":                                   "extra",
		"I 1":                                       "extra",
		"M 1":                                       "extra",
		"V ":                                        "extra",
		"R now":                                     "extra",
		"X x":                                       "extra",
		"Q 2":                                       "range",
		"Q on":                                      "number",
		"Q 1 1":                                     "extra",
	} {
		got := c.ask(request)
		if !strings.HasPrefix(got, "! "+code+" ") || len(got) > 300 || !printable(got) {
			t.Errorf("%.40q is answered by %q, want %s", request, got, code)
		}
		c.alive()
	}
	for _, request := range []string{"D 0 0", "D 4294967296 0", "G 5 0 0 1 0 0", "G 5 0 0 1 0 4294967296 1"} {
		if got := c.ask(request); !strings.HasPrefix(got, "! range ") || !strings.HasSuffix(got, "from 1 to 48, the context of this model") {
			t.Errorf("%q is answered by %q", request, got)
		}
	}
	c.send(long[:4096] + "\n") // of the greatest length
	if got := c.line(); !strings.HasPrefix(got, "! context ") {
		t.Errorf("a line of 4,096 bytes is answered by %q", got)
	}
	c.send(long[:4096] + "\r\nV\r\n\n\r\nX\nV\n") // other ends; empty lines and a late X have no answer
	for _, want := range []string{"! context ", "V 1", "V 1"} {
		if got := c.line(); !strings.HasPrefix(got, want) {
			t.Errorf("%q came, want %q", got, want)
		}
	}
}

func printable(line string) bool {
	return !strings.ContainsFunc(line, func(r rune) bool { return r < 0x20 || r > 0x7e })
}

var anyLine = regexp.MustCompile(`^(# .*|P \d+\.\d|T \d+ \d+( .*)?|E \d+ \d+\.\d\d [a-z]+|D \d+ \d 0x[0-9a-f]{16}|Q [01]|V 1|R|! [a-z-]+ .+|\{.*\})$`)

func TestFloodOfBytes(t *testing.T) {
	_, path := model(t)
	c := start(t, "--model", path)
	r := rand.New(rand.NewPCG(5, 5))
	letters := []byte("GSXIQDV 0123456789 \n\n\\x")
	for round := range 60 {
		b := make([]byte, r.IntN(12000))
		for i := range b {
			switch {
			case round%3 == 0:
				b[i] = byte(r.Uint32())
			case round%3 == 1 && r.IntN(400) > 0:
				b[i] = byte(32 + r.IntN(95))
			default:
				b[i] = letters[r.IntN(len(letters))]
			}
		}
		c.send(string(b) + "\nV\n")
		for line := ""; line != "V 1"; {
			if line = c.line(); !anyLine.MatchString(line) || !printable(line) {
				t.Fatalf("round %d: %q", round, line)
			}
		}
	}
	for more := true; more; { // a flood holds V too
		select {
		case <-c.lines:
		default:
			more = false
		}
	}
	c.send("I\n")
	for line := ""; !strings.HasPrefix(line, "{"); line = c.line() {
	}
}

// Whatever keeps the board from starting is told, in the remarks and to every request; and a restart tries again.
func TestBootFailures(t *testing.T) {
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	file := func(change func(f []byte) []byte) string { return write(t, change(slices.Clone(b.Bytes))) }
	fixed := func(f []byte) []byte {
		clear(f[28:32])
		binary.LittleEndian.PutUint32(f[28:], crc32.ChecksumIEEE(f))
		return f
	}
	golden := *b.Model
	golden.Golden.Digest ^= 1
	wrong, err := image.Encode(&golden)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		name string
		args []string
		code string
		want string
	}{
		{"empty partition", nil, "model-empty", "chiplm flash"},
		{"empty file", []string{"--model", write(t, nil)}, "model-empty", "chiplm flash"},
		{"no file", []string{"--model", "no-such-file"}, "model", "cannot be read"},
		{"short", []string{"--model", file(func(f []byte) []byte { return f[:40] })}, "model", "shorter than an image header"},
		{"cut", []string{"--model", file(func(f []byte) []byte { return f[:len(f)/2] })}, "model", fmt.Sprintf("found %d, wanted %d", len(b.Bytes), len(b.Bytes)/2)},
		{"magic", []string{"--model", file(func(f []byte) []byte { f[0] = 'X'; return f })}, "model", "no chiplm image"},
		{"version", []string{"--model", file(func(f []byte) []byte { f[4] = 9; return fixed(f) })}, "model", "found 9, wanted 2"},
		{"crc", []string{"--model", file(func(f []byte) []byte { f[len(f)/2] ^= 1; return f })}, "model", "the checksum of the file"},
		{"golden", []string{"--model", write(t, wrong)}, "golden", "other bits"},
		{"no PSRAM", []string{"--model", write(t, b.Bytes), "--psram", "0"}, "psram", "octal"},
		{"little PSRAM", []string{"--model", write(t, b.Bytes), "--psram", "20000"}, "memory", "of 20000"},
		{"little SRAM", []string{"--model", write(t, b.Bytes), "--sram", "60000"}, "memory", "not enough sram for "},
		{"no SRAM", []string{"--model", write(t, b.Bytes), "--sram", "0"}, "memory", "the engine's buffers"},
	} {
		t.Run(r.name, func(t *testing.T) {
			c := start(t, r.args...)
			for range 2 {
				last := c.boot[len(c.boot)-1]
				reason, ok := strings.CutPrefix(last, "# not ready: "+r.code+" ")
				if !ok || !strings.Contains(reason, r.want) {
					t.Fatalf("the board says %q, want %s ... %s", last, r.code, r.want)
				}
				for _, request := range []string{"G 1 0 0 1 0 1 0", "S 1 0 0 1 a", "D 1 0", "Q", "M"} {
					if got := c.ask(request); got != "! "+r.code+" "+reason {
						t.Errorf("%s is answered by %q", request, got)
					}
				}
				var info struct {
					Error struct{ Code, Message string }
				}
				if err := json.Unmarshal([]byte(c.ask("I")), &info); err != nil || info.Error.Code != r.code || info.Error.Message != reason {
					t.Errorf("I says %+v: %v", info, err)
				}
				c.alive()
				if got := c.ask("R"); got != "R" {
					t.Errorf("R is answered by %q", got)
				}
				c.remarks()
			}
		})
	}
}

// A board that failed starts once the image is right.
func TestRestartTriesAgain(t *testing.T) {
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, nil)
	c := start(t, "--model", path)
	if err := os.WriteFile(path, b.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	c.ask("R")
	c.remarks()
	if last := c.boot[len(c.boot)-1]; last != "# ready" {
		t.Fatalf("after the restart it says %q", last)
	}
	c.send("S 3 0 0 1 Once\n")
	if got := c.tokens(); got.why != "length" {
		t.Errorf("it gave %+v", got)
	}
}

// residentPages is the memory that a process holds.
func residentPages(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skip("the system does not tell the memory of a process")
	}
	var size, resident int
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident
}

func TestThousandRequestsInFlatMemory(t *testing.T) {
	_, path := model(t)
	c := start(t, "--model", path)
	request := func(i int) {
		switch i % 5 {
		case 0:
			c.send(fmt.Sprintf("S 4 %d 40 %d Once upon a time\n", i%2*800, i))
			c.tokens()
		case 1:
			c.send(generate(3, 700, 0, uint64(i), 1, []int32{0, 1, 2}))
			c.tokens()
		case 2:
			c.ask("D 3 " + strconv.Itoa(i%3))
		case 3:
			c.ask("G 1 2 3 4 nonsense")
		default:
			c.ask("I")
		}
	}
	for i := range 100 {
		request(i)
	}
	before := residentPages(t, c.cmd.Process.Pid)
	for i := range 1000 {
		request(i)
	}
	if after := residentPages(t, c.cmd.Process.Pid); after > before+16 {
		t.Errorf("1,000 requests took %d pages of memory", after-before)
	}
}

// X ends the request that runs, when it is the next line.
func TestStop(t *testing.T) {
	_, path := model(t)
	c := start(t, "--model", path)
	slow := generate(1000000, 700, 5, 3, 0, []int32{1})
	c.send(slow + "X\n")
	if got := c.tokens(); got.why != "stopped" || len(got.ids) == 0 {
		t.Errorf("it gave %+v", got)
	}
	c.send(slow + slow + "X\nV\n") // requests sent ahead are answered in order
	if got := c.tokens(); got.why != "context" {
		t.Errorf("the first of two gave %+v", got)
	}
	if got := c.tokens(); got.why != "stopped" {
		t.Errorf("the second of two gave %+v", got)
	}
	if got := c.line(); got != "V 1" {
		t.Errorf("V is answered by %q", got)
	}
	c.send(slow + "\n\r\nX\nV\n") // a program that opens the port while one that left is still answered begins so
	if got := c.tokens(); got.why != "stopped" {
		t.Errorf("behind empty lines it gave %+v", got)
	}
	if got := c.line(); got != "V 1" {
		t.Errorf("V is answered by %q", got)
	}
	prompt := make([]int32, 40)
	c.send(generate(5, 0, 0, 1, 0, prompt) + "X\n") // while the prompt is read
	if got := c.tokens(); got.why != "stopped" || len(got.ids) != 0 {
		t.Errorf("it gave %+v", got)
	}
	for _, request := range []string{"D 48 0", "M"} {
		c.send(request + "\nX\n")
		if got := c.line(); !strings.HasPrefix(got, "! stopped ") {
			t.Errorf("%s is answered by %q", request, got)
		}
	}
	c.alive()
}
