package board_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// frameBytes is what a function of the firmware may take of a task's stack, which has 8 KB on the second core.
const frameBytes = "-Wframe-larger-than=512"

// TestXtensa compiles the firmware, but for its ports, for the family of processors that the chip belongs to.
func TestXtensa(t *testing.T) {
	const compiler = "xtensa-lx106-elf-gcc"
	if _, err := exec.LookPath(compiler); err != nil {
		if os.Getenv("CHIPLM_XTENSA") == "required" {
			t.Fatal(compiler + " is not installed; on Linux ./setup.sh xtensa brings it")
		}
		t.Skip(compiler + " is not installed")
	}
	sources(t, "*.h", "testdata/xtensa/*.h", "../../engine/*.h")
	files := slices.DeleteFunc(sources(t, "*.c"), func(f string) bool { return strings.HasSuffix(f, "_host.c") })
	if len(files) < 10 {
		t.Fatalf("only %v", files)
	}
	includes := filepath.Dir(sources(t, "testdata/xtensa/string.h")[0])
	core := filepath.Dir(sources(t, "../../engine/chiplm.h")[0])
	for _, optimise := range []string{"-O2", "-Os"} {
		args := slices.Concat(warnings, []string{optimise, frameBytes, "-ffreestanding", "-I" + includes, "-I" + core, "-c"}, files)
		cmd := exec.Command(compiler, args...)
		cmd.Dir = t.TempDir()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s %v: %v\n%s", compiler, args, err, out)
		}
	}
}
