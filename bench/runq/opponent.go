package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/chiplm/chiplm/bench/comparison"
)

// Opponent is one build of runq.
type Opponent struct {
	Name string `json:"name"`           // the file's
	Path string `json:"path"`           //
	Note string `json:"note,omitempty"` // how it was compiled, in the user's words
}

// network is a model that opponents run: the files written for it.
type network struct {
	model, tokenizer string
	context          int // positions, and tokens to be written
}

// surroundings of an opponent: one thread, and memory in large pages where the system gives them on request, which saves
// it the faults of touching its cache for the first time, up to a fiftieth of its time. Only glibc knows the last three.
var surroundings = []string{"OMP_NUM_THREADS=1", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1", "MALLOC_MMAP_THRESHOLD_=4294967296",
	"MALLOC_TOP_PAD_=67108864"}

var speedLine = regexp.MustCompile(`achieved tok/s: (\S+)`)

// run lets the opponent write the likeliest token at every position, on one thread, to out; nil is nowhere. It gives the
// seconds for the tokens after the first, as the opponent took them: in whole milliseconds.
func (o Opponent) run(ctx context.Context, n network, out io.Writer) (seconds float64, err error) {
	cmd := exec.CommandContext(ctx, o.Path, n.model, "-t", "0", "-n", strconv.Itoa(n.context), "-s", "1", "-z", n.tokenizer)
	cmd.Env = append(os.Environ(), surroundings...)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, fmt.Errorf("%s: %w: %s", o.Path, err, strings.TrimSpace(stderr.String()))
	}
	match := speedLine.FindSubmatch(stderr.Bytes())
	if match == nil {
		return 0, fmt.Errorf("%s: no line with \"achieved tok/s\" on its standard error: %q; is it llama2.c's runq?", o.Path, stderr.String())
	}
	speed, err := strconv.ParseFloat(string(match[1]), 64) // inf when no millisecond has passed
	if err != nil || !(speed > 0) {
		return 0, fmt.Errorf("%s: a speed of %q tokens/s", o.Path, match[1])
	}
	return math.Round(float64(n.context-1)/speed*1000) / 1000, nil
}

// ids runs the opponent once and gives the tokens that it wrote, one for each position.
func (o Opponent) ids(ctx context.Context, n network) ([]int32, error) {
	var out bytes.Buffer
	if _, err := o.run(ctx, n, &out); err != nil {
		return nil, err
	}
	ids, err := readIDs(strings.TrimSuffix(out.String(), "\n"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Path, err)
	}
	if len(ids) != n.context {
		return nil, fmt.Errorf("%s: wrote %d tokens, not the %d that it was asked for", o.Path, len(ids), n.context)
	}
	return ids, nil
}

// readIDs reads the texts of tokens.
func readIDs(text string) ([]int32, error) {
	var ids []int32
	for len(text) >= pieceBytes {
		id, err := strconv.ParseInt(text[:pieceBytes], 16, 32)
		if err != nil {
			return nil, fmt.Errorf("wrote %q, which is no token of the model's", text[:pieceBytes])
		}
		ids, text = append(ids, int32(id)), text[pieceBytes:]
	}
	if text != "" {
		return nil, fmt.Errorf("ends with %q, which is no token of the model's", text)
	}
	return ids, nil
}

// opponents joins the paths and notes of a command line.
func opponents(paths, notes []string) ([]Opponent, error) {
	if len(paths) == 0 {
		return nil, fmt.Errorf("--runq is missing: name a program built from llama2.c's runq.c, see bench/README.md: %w", comparison.ErrUsage)
	}
	if len(notes) > len(paths) {
		return nil, fmt.Errorf("--runq-flags-note is given %d times and --runq %d times: give one note for each program: %w",
			len(notes), len(paths), comparison.ErrUsage)
	}
	var all []Opponent
	seen := map[string]bool{}
	for i, path := range paths {
		found, err := exec.LookPath(path)
		if err != nil {
			if errors.Is(err, exec.ErrNotFound) && !strings.ContainsRune(path, filepath.Separator) {
				return nil, fmt.Errorf("--runq %s: there is no such program; write ./%s for one in this folder: %w", path, path, err)
			}
			return nil, fmt.Errorf("--runq: %w", err)
		}
		o := Opponent{Name: filepath.Base(path), Path: found}
		if i < len(notes) {
			o.Note = notes[i]
		}
		if seen[o.Name] {
			o.Name = path
		}
		seen[o.Name] = true
		all = append(all, o)
	}
	return all, nil
}
