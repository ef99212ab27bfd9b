package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// commands run the two programs on one model file.
type commands struct {
	chiplm, python, script, config string
}

// allocator keeps glibc from giving memory back to the system and fetching it again at every step, which costs PyTorch
// up to a tenth of its speed. Elsewhere it has no effect.
var allocator = []string{"MALLOC_MMAP_THRESHOLD_=4294967296", "MALLOC_TRIM_THRESHOLD_=4294967296", "MALLOC_TOP_PAD_=268435456"}

// run times some steps of one entrant.
func (c commands) run(ctx context.Context, e entrant, s setting, threads, steps int) (*measurement, error) {
	var cmd *exec.Cmd
	if e.Program == chiplmName {
		cmd = exec.CommandContext(ctx, c.chiplm, "bench", "train", "--config", c.config, "--json",
			"--workers", fmt.Sprint(threads), "--steps", fmt.Sprint(steps))
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", threads))
	} else {
		args := []string{c.script, "--config", c.config, "--variant", e.Variant, "--threads", fmt.Sprint(threads),
			"--micro-batch", fmt.Sprint(s.MicroBatch), "--steps", fmt.Sprint(steps)}
		if e.Mode == compiled {
			args = append(args, "--compile")
		}
		cmd = exec.CommandContext(ctx, c.python, args...)
		cmd.Env = append(os.Environ(), allocator...)
		if s.Wait != "" {
			cmd.Env = append(cmd.Env, "OMP_WAIT_POLICY="+s.Wait)
		}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if said := lastLine(stderr.String()); said != "" {
			return nil, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, said)
		}
		return nil, fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	m := new(measurement)
	if err := json.Unmarshal(stdout.Bytes(), m); err != nil {
		return nil, fmt.Errorf("%s: its output is not the JSON object that was asked for: %w", filepath.Base(cmd.Path), err)
	}
	if !(m.TokensPerSecond > 0) || !(m.Fastest > 0) {
		return nil, fmt.Errorf("%s: no tokens_per_second or fastest_step_seconds in its output", filepath.Base(cmd.Path))
	}
	return m, nil
}

// lastLine is the last line with text: of a Python traceback, the one that says what happened.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
