package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The C core under other compilers and flags than the Go build's, by way of testdata/run.c.

// coreFlags are what every build of the core needs, and the warnings it must pass.
var coreFlags = []string{"-std=c11", "-ffp-contract=off", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion",
	"-Wdouble-promotion", "-Wcast-qual", "-Wstrict-prototypes", "-Wvla", "-Werror"}

func coreFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.c")
	if err != nil || len(files) == 0 {
		t.Fatalf("no C files: %v", err)
	}
	return files
}

// compiler runs a compiler with a time limit and returns what it printed.
func compiler(t *testing.T, cc string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, cc, args...).CombinedOutput()
	return string(out), err
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
}

// buildCore compiles the core to objects; it skips if the compiler cannot link even an empty program with the flags.
func buildCore(t *testing.T, flags ...string) (objects []string) {
	t.Helper()
	need(t, "gcc")
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.c")
	if err := os.WriteFile(empty, []byte("#include <stdlib.h>\nint main(void) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := compiler(t, "gcc", append(slices.Clone(flags), empty, "-o", filepath.Join(dir, "empty"))...); err != nil {
		t.Skipf("gcc lacks %v: %s", flags, out)
	}
	return compileAll(t, "gcc", slices.Concat(coreFlags, flags), coreFiles(t), dir)
}

// compileAll compiles files to objects in dir, as many at a time as there are processors: the paths with vectors take most
// of the time, and one compiler takes its files one by one.
func compileAll(t *testing.T, cc string, flags, files []string, dir string) (objects []string) {
	t.Helper()
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.NumCPU())
	for _, file := range files {
		object := filepath.Join(dir, strings.TrimSuffix(filepath.Base(file), ".c")+".o")
		objects = append(objects, object)
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			args := slices.Concat(flags, []string{"-c", file, "-o", object})
			if out, err := compiler(t, cc, args...); err != nil {
				t.Errorf("%s %v: %v\n%s", cc, args, err, out)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return objects
}

// link makes a program of the core's objects and other sources.
func link(t *testing.T, core, flags []string, sources ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	args := slices.Concat(coreFlags, flags, []string{"-Wno-cast-qual"}, sources, core, []string{"-lm", "-o", program})
	if out, err := compiler(t, "gcc", args...); err != nil {
		t.Fatalf("gcc %v: %v\n%s", args, err, out)
	}
	return program
}

// buildRun compiles run.c and the core.
func buildRun(t *testing.T, flags ...string) string {
	t.Helper()
	return link(t, buildCore(t, flags...), flags, "testdata/run.c")
}

// runCore runs the program over images and returns a line for each.
func runCore(t *testing.T, program string, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("run: %v\n%s", err, stderr.String())
	}
	return strings.Split(strings.TrimSpace(stdout.String()), "\n")
}

// writeTestImages writes an image for each test configuration and returns the paths and the lines expected for them.
func writeTestImages(t *testing.T) (paths, want []string) {
	t.Helper()
	dir := t.TempDir()
	for name, cfg := range testConfigs() {
		m := newTestModel(t, cfg, 11)
		if cfg.VocabSize > 20 {
			m.cluster(t, 9)
		}
		b := m.image(t, randomIDs(min(4, cfg.ContextLength), cfg.VocabSize, 1)).bytes
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".image")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		ids := make([]int32, cfg.ContextLength)
		for i := range ids {
			ids[i] = int32((7*i + 3) % cfg.VocabSize)
		}
		paths = append(paths, path)
		want = append(want, fmt.Sprintf("ok %016x", referenceDigest(ids, m.forward(ids), cfg.VocabSize)))
	}
	return paths, want
}

func TestCoreGivesTheSameBitsUnderOtherFlags(t *testing.T) {
	paths, want := writeTestImages(t)
	builds := map[string][]string{
		"optimised":   {"-O3"},
		"unoptimised": {"-O0"},
	}
	if runtime.GOARCH == "amd64" {
		builds["optimised"] = append(builds["optimised"], "-mavx2", "-mfma") // could fuse, and must not
		builds["32-bit machine"] = []string{"-O1", "-m32", "-msse2", "-mfpmath=sse"}
	}
	for name, flags := range builds {
		t.Run(name, func(t *testing.T) {
			program := buildRun(t, flags...)
			var modes [][]string
			for _, path := range Paths() {
				p := fmt.Sprint(int(path))
				if name == "32-bit machine" && path != PathPlain {
					continue
				}
				modes = append(modes, []string{"-p", p, "-b", "1"}, []string{"-p", p, "-b", "37", "-c"}, []string{"-p", p, "-b", "8", "-d"})
				if runtime.GOARCH == "amd64" {
					modes = append(modes, []string{"-p", p, "-b", "1", "-f"}, []string{"-p", p, "-b", "32", "-f"})
				}
			}
			for _, mode := range modes {
				got := runCore(t, program, append(mode, paths...)...)
				if len(got) != len(want) {
					t.Fatalf("%v: %d lines for %d images", mode, len(got), len(want))
				}
				for i := range want {
					if got[i] != want[i] {
						t.Errorf("%v, %s: %q, the reference has %q", mode, filepath.Base(paths[i]), got[i], want[i])
					}
				}
			}
		})
	}
}

// TestCoreRefusesContraction compiles with fused products and sums, which give other bits: the engine must say so before it
// computes any.
func TestCoreRefusesContraction(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the flags are those of x86")
	}
	program := buildRun(t, "-O2", "-mfma", "-ffp-contract=fast")
	paths, _ := writeTestImages(t)
	for _, path := range Paths() {
		for i, line := range runCore(t, program, append([]string{"-p", fmt.Sprint(int(path))}, paths...)...) {
			if want := fmt.Sprintf("error %d", int(statusFused)); !strings.HasPrefix(line, want) {
				t.Errorf("%v, %s: %q, want %q", path, filepath.Base(paths[i]), line, want)
			}
		}
	}
}

func TestCoreUnderSanitizers(t *testing.T) {
	flags := []string{"-O1", "-g1", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"}
	core := buildCore(t, flags...)
	t.Run("fed with what is hostile", func(t *testing.T) { feedHostile(t, core, flags) })
	program := link(t, core, flags, "testdata/run.c")
	paths, want := writeTestImages(t)
	for _, path := range Paths() {
		for _, batch := range []string{"1", "8", "38"} {
			for _, extra := range [][]string{{}, {"-c"}} { // a copy holds its bytes and nothing behind
				args := slices.Concat([]string{"-p", fmt.Sprint(int(path)), "-b", batch}, extra, paths)
				got := runCore(t, program, args...)
				if strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("%v, batch %s: %v, want %v", path, batch, got, want)
				}
			}
		}
	}

	dir := t.TempDir()
	var hostile []string
	for i, b := range hostileImages(t) {
		path := filepath.Join(dir, fmt.Sprintf("%05d.image", i))
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		hostile = append(hostile, path)
	}
	for _, path := range Paths() {
		lines := runCore(t, program, append([]string{"-p", fmt.Sprint(int(path)), "-b", "7"}, hostile...)...)
		if len(lines) != len(hostile) {
			t.Errorf("%v: %d lines for %d images", path, len(lines), len(hostile))
		}
	}
}

func TestCoreCompilesWithClang(t *testing.T) {
	need(t, "clang")
	t.Chdir(sources(t))
	compileAll(t, "clang", append(slices.Clone(coreFlags), "-O2"), coreFiles(t), ".")
}

// TestCoreCompilesFor32Bits compiles for a machine of 32 bits, where a size_t is shorter than an offset in an image. No
// C library for it is needed: the few functions that the core calls are declared here.
func TestCoreCompilesFor32Bits(t *testing.T) {
	need(t, "gcc")
	if runtime.GOARCH != "amd64" {
		t.Skip("the flags are those of x86")
	}
	t.Chdir(sources(t))
	for name, text := range map[string]string{
		"string.h": "#include <stddef.h>\nvoid *memcpy(void *, const void *, size_t);\nvoid *memset(void *, int, size_t);\n" +
			"int memcmp(const void *, const void *, size_t);\n",
		"math.h": "float sqrtf(float);\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	flags := append(slices.Clone(coreFlags), "-O1", "-m32", "-msse2", "-mfpmath=sse", "-ffreestanding", "-I.")
	compileAll(t, "gcc", flags, coreFiles(t), ".")
}

// sources copies the core to a folder of its own, for compilers to leave their output in.
func sources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	headers, err := filepath.Glob("*.h")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "pie"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range append(coreFiles(t), append(headers, filepath.Join("pie", "pie.h"))...) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestCoreNeedsNothing holds the core to what a chip offers: no allocation, no files, no mathematics but sqrtf, and no
// variable that outlives a call.
func TestCoreNeedsNothing(t *testing.T) {
	need(t, "gcc")
	need(t, "nm")
	t.Chdir(sources(t))
	for _, level := range []string{"-O2", "-Os"} { // a compiler may make calls of loops, and others at another level
		coreNeedsNothing(t, level)
	}
}

func coreNeedsNothing(t *testing.T, level string) {
	objects := compileAll(t, "gcc", append(slices.Clone(coreFlags), level, "-fno-stack-protector", "-fno-pie"), coreFiles(t), ".")
	out, err := compiler(t, "nm", append([]string{"-A"}, objects...)...)
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"memcpy", "memset", "memcmp", "memmove", "sqrtf", "_GLOBAL_OFFSET_TABLE_",
		"__cpu_model", "__cpu_features2"} // the compiler's own, for the choice of a path on x86
	symbols := 0
	for line := range strings.Lines(out) { // file: [address] kind name
		f := strings.Fields(line)
		kind, name := f[len(f)-2], f[len(f)-1]
		symbols++
		switch {
		case kind == "U" && !strings.HasPrefix(name, "chiplm_") && !slices.Contains(allowed, name):
			t.Errorf("%s: %s needs %s", level, f[0], name)
		case strings.Contains("BbCDdGgSs", kind):
			t.Errorf("%s: %s holds the variable %s", level, f[0], name)
		}
	}
	if symbols < 50 {
		t.Errorf("nm listed %d symbols:\n%s", symbols, out)
	}
}
