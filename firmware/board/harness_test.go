package board_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/targets"
)

// The firmware as a program of this machine, built with sanitizers, in a conversation over pipes.

// patience is how long a test waits for an answer before it gives up. No result depends on it.
const patience = 2 * time.Minute

var warnings = []string{"-std=c11", "-ffp-contract=off", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion",
	"-Wdouble-promotion", "-Wcast-qual", "-Wstrict-prototypes", "-Wvla", "-Werror"}

// sources lists C files, and opens each, so that go test knows to run again when one has changed.
func sources(t testing.TB, patterns ...string) (files []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, file := range found {
			if _, err := os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
		}
	}
	return files
}

var programDir string // to be removed

// program is the path of the virtual board, built once: the firmware with sanitizers, the engine, which has tests of its
// own, without.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "chiplm-board")
	if err != nil {
		return "", err
	}
	programDir = dir
	files := func(pattern string) []string {
		found, _ := filepath.Glob(pattern)
		for i := range found {
			found[i], _ = filepath.Abs(found[i])
		}
		return found
	}
	core, _ := filepath.Abs("../../engine")
	gcc := func(args ...string) error {
		cmd := exec.Command("gcc", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("gcc %v: %w\n%s", args, err, out)
		}
		return nil
	}
	built := make(chan error, 1)
	go func() {
		built <- gcc(slices.Concat(warnings[:2], []string{"-O1", "-DCHIPLM_HOST", "-c"}, files("../../engine/*.c"))...)
	}()
	sanitizers := []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}
	objects := filepath.Join(dir, "board")
	if err := os.Mkdir(objects, 0o755); err != nil {
		return "", err
	}
	for _, file := range files("*.c") {
		args := slices.Concat(warnings, sanitizers, []string{"-O1", "-g", "-DCHIPLM_BOARD_MAIN", "-I" + core, "-c", file, "-o",
			filepath.Join(objects, filepath.Base(file)+".o")})
		if err := gcc(args...); err != nil {
			return "", err
		}
	}
	if err := <-built; err != nil {
		return "", err
	}
	all := slices.Concat(files(filepath.Join(dir, "*.o")), files(filepath.Join(objects, "*.o")))
	path := filepath.Join(dir, "board-program")
	return path, gcc(slices.Concat(sanitizers, all, []string{"-lm", "-pthread", "-o", path})...)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if programDir != "" {
		_ = os.RemoveAll(programDir)
	}
	os.Exit(code)
}

const modelYAML = `name: small
vocab_size: 1040
d_model: 64
n_layers: 2
n_heads: 2
d_ff: 96
context_length: 48
ple_dim: 16
tie_embeddings: true
activation: relu
quant: {weights: {bits: 4, group: 32, scale: f32}}
train: {batch_tokens: 96, micro_batch: 2}
`

// built is an image of random weights with clusters, placed for the chip.
var built = sync.OnceValues(func() (*export.Built, error) {
	c, err := configs.Parse("small.yaml", []byte(modelYAML))
	if err != nil {
		return nil, err
	}
	text := "Once upon a time there was a little girl. The little girl was once in the park. Déjà vu, caf\xc3\xa9!\n"
	tok, err := bpe.Train(context.Background(), func(yield func([]byte) error) error { return yield([]byte(text)) }, 280)
	if err != nil {
		return nil, err
	}
	w := arch.InitWeights(c, 1)
	rng := rand.New(rand.NewPCG(2, 3))
	ck := &checkpoints.Checkpoint{Config: c, Tokenizer: tok.JSON(), Tensors: map[string][]float32{}}
	for i, x := range w.Tensors {
		for j := range w.Data[i] {
			w.Data[i][j] += 0.2 * (rng.Float32() - 0.5)
		}
		ck.Tensors[x.Name] = w.Data[i]
	}
	target, err := targets.Load("esp32s3")
	if err != nil {
		return nil, err
	}
	return export.BuildImage(context.Background(), ck, export.Options{Target: target, Clusters: 64})
})

// model is the image, opened, and its path.
func model(t *testing.T) (*engine.Image, string) {
	t.Helper()
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	im, err := engine.NewImage(b.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = im.Close() })
	return im, write(t, b.Bytes)
}

func write(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.clm")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// talk is a conversation with a running board.
type talk struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // closed at the end of the output
	boot  []string    // the remarks
}

// start runs the program and reads its remarks.
func start(t *testing.T, args ...string) *talk {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is not installed")
	}
	sources(t, "*.c", "*.h", "../../engine/*.c", "../../engine/*.h")
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	c := &talk{t: t, cmd: exec.Command(path, args...), lines: make(chan string, 100000)}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go read(out, c.lines)
	t.Cleanup(func() {
		_ = c.in.Close()
		timer := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
		defer timer.Stop()
		for range c.lines {
		}
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("the board ended with %v", err)
		}
	})
	c.remarks()
	return c
}

func read(out io.Reader, lines chan<- string) {
	defer close(lines)
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines <- scanner.Text()
	}
}

// remarks reads up to the end of the boot.
func (c *talk) remarks() {
	c.t.Helper()
	c.boot = nil
	for {
		line := c.line()
		c.boot = append(c.boot, line)
		if line == "# ready" || strings.HasPrefix(line, "# not ready: ") {
			return
		}
		if !strings.HasPrefix(line, "# ") {
			c.t.Fatalf("the boot said %q", line)
		}
	}
}

func (c *talk) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text); err != nil {
		c.t.Fatalf("the board does not listen: %v", err)
	}
}

// line is the next line of output.
func (c *talk) line() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the board ended")
		}
		return line
	case <-time.After(patience):
		c.t.Fatal("no answer")
	}
	return ""
}

// ask sends a request and returns its answer of one line.
func (c *talk) ask(request string) string {
	c.t.Helper()
	c.send(request + "\n")
	return c.line()
}

// alive checks that the next request is answered.
func (c *talk) alive() {
	c.t.Helper()
	if got := c.ask("V"); got != "V 1" {
		c.t.Fatalf("V is answered by %q", got)
	}
}

// answer is what a request for tokens gave.
type answer struct {
	ids  []int32
	text []string // the third fields
	why  string
}

var (
	promptLine = regexp.MustCompile(`^P \d+\.\d$`)
	tokenLine  = regexp.MustCompile(`^T (\d+) \d+( .*)?$`)
	endLine    = regexp.MustCompile(`^E (\d+) \d+\.\d\d (end|length|context|stopped)$`)
)

// tokens reads the answer to G or S.
func (c *talk) tokens() (a answer) {
	c.t.Helper()
	if line := c.line(); !promptLine.MatchString(line) {
		c.t.Fatalf("instead of P came %q", line)
	}
	for {
		line := c.line()
		if m := endLine.FindStringSubmatch(line); m != nil {
			if m[1] != fmt.Sprint(len(a.ids)) {
				c.t.Fatalf("%d tokens came, and %q", len(a.ids), line)
			}
			a.why = m[2]
			return a
		}
		m := tokenLine.FindStringSubmatch(line)
		if m == nil {
			c.t.Fatalf("instead of T or E came %q", line)
		}
		var id int32
		if _, err := fmt.Sscan(m[1], &id); err != nil {
			c.t.Fatal(err)
		}
		a.ids = append(a.ids, id)
		if m[2] != "" {
			a.text = append(a.text, m[2][1:])
		}
	}
}
