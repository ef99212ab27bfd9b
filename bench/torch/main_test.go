package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/bench/comparison"
)

// script writes a program that stands for chiplm or for Python.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPrograms runs a whole comparison of two stand-ins, which speak up when their command line is not as expected.
func TestPrograms(t *testing.T) {
	chiplm := script(t, `case "$*" in
"bench train --config "*"/model.yaml --json --workers 2 --steps "*) [ "$GOMAXPROCS" = 2 ] && grep -q '^vocab_size: 1024$' "$4" || exit 3
	echo '{"tokens_per_second": 6000, "fastest_step_seconds": 0.5, "tokens_per_step": 1024, "cpu": "cpu", "simd": "avx2"}' ;;
*) echo "unexpected: $*" >&2; exit 3 ;;
esac`)
	python := script(t, `case "$*" in
"train.py --config "*"/model.yaml --variant "*" --threads 2 --micro-batch 8 --steps "*" --compile")
	echo Traceback >&2; echo "InductorError: no compiler" >&2; exit 1 ;;
"train.py --config "*"/model.yaml --variant "*" --threads 2 --micro-batch 8 --steps "*)
	[ "$OMP_WAIT_POLICY" = passive ] && speed=3000 seconds=0.25 || { speed=1500; seconds=0.5; }
	echo "{\"tokens_per_second\": $speed, \"fastest_step_seconds\": $seconds, \"tokens_per_step\": 1024, \"torch\": \"2\"}" ;;
*) echo "unexpected: $*" >&2; exit 3 ;;
esac`)
	args := []string{"--chiplm", chiplm, "--python", python, "--script", "train.py", "--config", "builtin:demo.yaml", "--threads", "2",
		"--micro-batch", "8", "--rounds", "2", "--json"}
	var out bytes.Buffer
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	rows := got["rows"].([]any)
	eagerRow, compiledRow := rows[1].(map[string]any), rows[3].(map[string]any)
	if eagerRow["ratio"] != 2.0 || eagerRow["omp_wait_policy"] != "passive" || eagerRow["micro_batch"] != 8.0 || eagerRow["mode"] != eager {
		t.Errorf("eager: %v", eagerRow)
	}
	if failure, _ := compiledRow["failure"].(string); !strings.HasSuffix(failure, "InductorError: no compiler") {
		t.Errorf("compiled: %v", compiledRow)
	}
}

// TestUnusableOutput is an error that names the program.
func TestUnusableOutput(t *testing.T) {
	for text, want := range map[string]string{
		"echo fast":                       "not the JSON object",
		`echo '{"tokens_per_second": 1}'`: "no tokens_per_second or fastest_step_seconds",
		"echo it broke >&2; exit 4":       "exit status 4: it broke",
		"kill -9 $$":                      "signal: killed",
	} {
		c := commands{chiplm: script(t, text)}
		_, err := c.run(t.Context(), entrants[0], setting{}, 1, 1)
		if err == nil || !strings.HasPrefix(err.Error(), "program: ") || !strings.Contains(err.Error(), want) || strings.HasSuffix(err.Error(), ": ") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, line := range []string{"--threads 0", "--threads 1,", "--micro-batch many", "--rounds 0", "--steps -1", "--omp-wait passive,", "more", "--frobnicate"} {
		if err := run(t.Context(), strings.Fields(line), io.Discard, io.Discard); !errors.Is(err, comparison.ErrUsage) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
