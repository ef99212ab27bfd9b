package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chiplm/chiplm/data/bpe"
)

// The C core on the family of processors that the chip belongs to: 32-bit Xtensa, little endian, in QEMU. The processor
// is the lx106, for which Debian has a compiler: no floats, no instruction to divide, no unaligned loads, and a char
// without a sign. The start, the C library and the arithmetic that are missing there are in testdata/xtensa.

const xtensaCompiler, xtensaCPU = "xtensa-lx106-elf-gcc", "lx106"

// needTools skips a test that lacks a program, or fails it when CHIPLM_XTENSA=required is set, as make xtensa does.
func needTools(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		message := program + " is not installed; on Linux ./setup.sh xtensa brings what these tests need"
		if os.Getenv("CHIPLM_XTENSA") == "required" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
}

// xtensaFiles are files of testdata/xtensa by absolute path. Each is opened, so that go test knows to run again when
// one has changed.
func xtensaFiles(t *testing.T, names ...string) []string {
	t.Helper()
	var paths []string
	for _, name := range names {
		path, err := filepath.Abs(filepath.Join("testdata", "xtensa", name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// TestCoreXtensaArithmetic compares the floats made of integers, on which the test below stands, with those of this
// machine. The program says what it compares.
func TestCoreXtensaArithmetic(t *testing.T) {
	needTools(t, "gcc")
	files := xtensaFiles(t, "soft_test.c", "soft_float.c", "soft_integer.c", "soft_float.h", "soft_integer.h")
	program := filepath.Join(t.TempDir(), "soft_test")
	args := slices.Concat(coreFlags, []string{"-O2", "-DCHIPLM_HOST"}, files[:3], []string{"-lm", "-o", program})
	if out, err := compiler(t, "gcc", args...); err != nil {
		t.Fatalf("gcc %v: %v\n%s", args, err, out)
	}
	millions := "3"
	if testing.Short() {
		millions = "0.1"
	}
	out, err := compiler(t, program, millions)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(out)
}

// xtensaCore is the core compiled for Xtensa: the object files that a program is linked from, but for its image.
type xtensaCore struct {
	objects []string
}

func buildXtensaCore(t *testing.T, optimise string) xtensaCore {
	t.Helper()
	ours := xtensaFiles(t, "main.c", "soft_float.c", "soft_integer.c", "memory.c", "start.S")
	headers := xtensaFiles(t, "include/math.h", "include/string.h", "soft_float.h", "soft_integer.h")
	// The compiler has no C library, and so counts as freestanding; the core wants its builtins all the same.
	flags := slices.Concat(coreFlags, []string{optimise, "-ffreestanding", "-I" + filepath.Dir(headers[0])})
	core := sources(t)
	rest := t.TempDir()
	for dir, args := range map[string][]string{
		core: slices.Concat(flags, []string{"-fbuiltin", "-c"}, coreFiles(t)),
		rest: slices.Concat(flags, []string{"-fno-tree-loop-distribute-patterns", "-c"}, ours),
	} {
		if out, err := in(t, dir, xtensaCompiler, args...); err != nil {
			t.Fatalf("%s %v: %v\n%s", xtensaCompiler, args, err, out)
		}
	}
	var build xtensaCore
	for _, dir := range []string{core, rest} {
		objects, err := filepath.Glob(filepath.Join(dir, "*.o"))
		if err != nil {
			t.Fatal(err)
		}
		build.objects = append(build.objects, objects...)
	}
	return build
}

// in runs a program in a folder, with a time limit, and returns what it printed.
func in(t *testing.T, dir, program string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run links the image into a program and returns what it prints: see testdata/xtensa/main.c. It fails the test when the
// program ends in another way than main.c says.
func (c xtensaCore) run(t *testing.T, image []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.image"), image, 0o644); err != nil {
		t.Fatal(err)
	}
	// libgcc is there for shifts of 64 bits and the like; of the arithmetic on floats, all is in soft_float.c.
	args := slices.Concat([]string{"-nostdlib", "-Wa,-I" + dir}, xtensaFiles(t, "image.S"), c.objects,
		[]string{"-lgcc", "-o", "run"})
	if out, err := in(t, dir, xtensaCompiler, args...); err != nil {
		t.Fatalf("the program does not link: %v\n%s", err, out)
	}
	out, err := in(t, dir, "qemu-xtensa", "-cpu", xtensaCPU, filepath.Join(dir, "run"))
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1 && strings.Contains(out, "error ")) {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// xtensaDigests is what main.c prints for a model up to the verification, for the sequence that it feeds.
func xtensaDigests(m *testModel) string {
	ids := make([]int32, m.cfg.ContextLength)
	for i := range ids {
		ids[i] = int32((7*i + 3) % m.cfg.VocabSize)
	}
	digest := referenceDigest(ids, m.forward(ids), m.cfg.VocabSize)
	return fmt.Sprintf("tokens %016x\neights %016x\nwhole %016x\n", digest, digest, digest)
}

func TestCoreOnXtensa(t *testing.T) {
	needTools(t, xtensaCompiler, "qemu-xtensa")
	for _, optimise := range []string{"-O2", "-Os"} {
		t.Run(optimise, func(t *testing.T) {
			core := buildXtensaCore(t, optimise)
			for name, cfg := range testConfigs() {
				t.Run(name, func(t *testing.T) {
					m := newTestModel(t, cfg, 11)
					prompt := randomIDs(min(4, cfg.ContextLength), cfg.VocabSize, 1)
					got := core.run(t, m.image(t, prompt).bytes)
					if want := xtensaDigests(m) + "verify ok\n"; got != want {
						t.Errorf("it printed\n%swhere the reference has\n%s", got, want)
					}
				})
			}
		})
	}
}

// TestCoreOnXtensaComputesWhatIsBuiltIn guards the test above: a model with the golden of another must give its own
// digests, and be refused.
func TestCoreOnXtensaComputesWhatIsBuiltIn(t *testing.T) {
	needTools(t, xtensaCompiler, "qemu-xtensa")
	core := buildXtensaCore(t, "-O2")
	cfg := testConfigs()["experts"]
	prompt := randomIDs(4, cfg.VocabSize, 1)
	m := newTestModel(t, cfg, 12)
	im, other := m.image(t, prompt), newTestModel(t, cfg, 11).image(t, prompt)
	place, from := im.sections["GOLD"], other.sections["GOLD"]
	copy(im.bytes[place[0]:place[0]+place[1]], other.bytes[from[0]:from[0]+from[1]])
	fixCRCs(im.bytes)
	got := core.run(t, im.bytes)
	if want := xtensaDigests(m) + "error verify "; !strings.HasPrefix(got, want) || !strings.Contains(got, "golden") {
		t.Errorf("it printed\n%swhere it should have begun with\n%s", got, want)
	}
}

// TestCoreOnXtensaEncodes encodes the text of main.c there and, by package bpe, here.
func TestCoreOnXtensaEncodes(t *testing.T) {
	needTools(t, xtensaCompiler, "qemu-xtensa")
	text := []byte("Jack and Jill went up the hill, and they'd fetch 12 pails;  \t\xff\xe3\x80 ")
	for c := rune(0); c <= utf8.MaxRune; c += 97 {
		if c >= 0xd800 && c < 0xe000 { // no character, but it has bytes
			text = append(text, 0xed, byte(0x80|c>>6&0x3f), byte(0x80|c&0x3f))
		} else {
			text = utf8.AppendRune(text, c)
		}
		text = append(text, "x1! "[c&3])
	}
	for _, optimise := range []string{"-O2", "-Os"} {
		core := buildXtensaCore(t, optimise)
		for name, tok := range map[string]*bpe.Tokenizer{"mixed": tokenizers(t)["mixed"], "classes": classTokenizer(t)} {
			m := newTestModel(t, shape(tok.Size(), 2, 1, 1, 1, 2, 0, 0), 11)
			m.tokn = tok.AppendImage(nil)
			digest := fnv.New64a()
			ids := tok.Encode(nil, text)
			if err := binary.Write(digest, binary.LittleEndian, ids); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("%sverify ok\nids %016x %016x\n", xtensaDigests(m), len(ids), digest.Sum64())
			if got := core.run(t, m.image(t, []int32{0}).bytes); got != want {
				t.Errorf("%s, %s: it printed\n%swhere package bpe has\n%s", optimise, name, got, want)
			}
		}
	}
}
