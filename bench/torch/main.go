// Command torch compares the speed of training of chiplm and PyTorch on this machine. See bench/README.md.
//
//	go run ./bench/torch --chiplm ./chiplm --python build/torch/bin/python
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/chiplm/chiplm/bench/comparison"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/jsonout"
)

func main() { comparison.Main("torch", run) }

// run executes one command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("torch", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprint(stderr, "Compare the speed of training of chiplm and PyTorch on this machine: see bench/README.md.\n\nFlags:\n")
		f.PrintDefaults()
	}
	chiplm := f.String("chiplm", "./chiplm", "the chiplm `program`")
	python := f.String("python", "build/torch/bin/python", "a Python `program` that has bench/torch/requirements.txt")
	script := f.String("script", "bench/torch/train.py", "the opponent's `file`")
	config := f.String("config", "configs/combo.yaml", "model `file`, or the name of a built-in one; without experts")
	threads := f.String("threads", defaultThreads(), "`numbers` of threads to compare at, with commas between")
	micro := f.String("micro-batch", "4,16", "`numbers` of sequences at a time that PyTorch may choose from")
	wait := f.String("omp-wait", "passive,active", "values of OMP_WAIT_POLICY that PyTorch may choose from, at more than one thread")
	rounds := f.Int("rounds", 3, "times everyone runs, in turn; figures are medians")
	steps := f.Int("steps", 5, "optimiser steps timed in each run")
	asJSON := f.Bool("json", false, "print one JSON object")
	if err := comparison.Parse(f, args); err != nil {
		return err
	}
	threadList, err := numbers("threads", *threads)
	if err != nil {
		return err
	}
	microList, err := numbers("micro-batch", *micro)
	if err != nil {
		return err
	}
	waitList := strings.Split(*wait, ",")
	for _, policy := range waitList {
		if policy != "passive" && policy != "active" {
			return fmt.Errorf("--omp-wait %q: give passive, active or both with a comma between: %w", *wait, comparison.ErrUsage)
		}
	}
	if *rounds < 1 || *steps < 1 {
		return fmt.Errorf("--rounds %d --steps %d: give 1 or more of both: %w", *rounds, *steps, comparison.ErrUsage)
	}

	cfg, err := configs.Load(*config, recipe...)
	if err != nil {
		return err
	}
	// PyTorch's side reads a file that inherits nothing and has every key, and chiplm's the same one.
	dir, err := os.MkdirTemp("", "chiplm-bench-torch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text, err := cfg.YAML()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "model.yaml")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}

	programs := commands{chiplm: *chiplm, python: *python, script: *script, config: path}
	c := contest{run: programs.run, threads: threadList, micro: microList, wait: waitList,
		rounds: *rounds, steps: *steps, log: stderr}
	result, err := c.hold(ctx)
	if ctx.Err() != nil {
		return errors.New("the comparison was stopped; figures need all rounds: start it again")
	}
	if err != nil {
		return err
	}
	result.Config = *config
	if *asJSON {
		return jsonout.Write(stdout, result)
	}
	return result.write(stdout)
}

// recipe is how both sides train, whatever the model file says: what the script knows, and a step that several numbers of
// micro-batches divide.
var recipe = []string{"train.optimizer=adamw", "train.batch_tokens=4096"}

// defaultThreads is one thread, and all processors.
func defaultThreads() string {
	if n := runtime.NumCPU(); n > 1 {
		return fmt.Sprintf("1,%d", n)
	}
	return "1"
}

// numbers reads the value of a flag: positive numbers with commas between.
func numbers(name, text string) ([]int, error) {
	var all []int
	for _, field := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--%s %q: give numbers from 1 with commas between, such as 1,2: %w", name, text, comparison.ErrUsage)
		}
		all = append(all, n)
	}
	return all, nil
}
