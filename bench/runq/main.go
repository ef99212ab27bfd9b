// Command runq compares the speed of chiplm's engine and of llama2.c's int8 runner at decoding one sequence, on this
// machine. See bench/README.md.
//
//	go run ./bench/runq --runq PROGRAM --model combo
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/bench/comparison"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/train/bench"
)

func main() { comparison.Main("runq", run) }

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, ", ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// run executes one command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("runq", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprint(stderr, "Compare the speed of chiplm's engine and of llama2.c's runq at decoding one sequence: see bench/README.md.\n\nFlags:\n")
		f.PrintDefaults()
	}
	var paths, notes list
	f.Var(&paths, "runq", "a `program` built from llama2.c's runq.c; may be given several times")
	f.Var(&notes, "runq-flags-note", "a `text` for the result, such as compiler and flags; one for each --runq, in their order")
	model := f.String("model", "", "also run this `model` of chiplm: a run, a checkpoint or an image; against the opponent's network of its sizes")
	shapes := f.String("shapes", strings.Join(shapeNames(), ","), "`names` of the shapes to compare, with commas between; empty: only that of --model")
	rounds := f.Int("rounds", 5, "times everyone runs, in turn; figures are medians")
	seconds := f.Float64("seconds", 0.5, "`time` that each entrant decodes in a round, at least")
	asJSON := f.Bool("json", false, "print one JSON object")
	if err := comparison.Parse(f, args); err != nil {
		return err
	}
	if *rounds < 1 || !(*seconds > 0 && *seconds <= 3600) {
		return fmt.Errorf("--rounds %d --seconds %g: give 1 round or more, and up to 3600 seconds: %w", *rounds, *seconds, comparison.ErrUsage)
	}
	chosen, err := choose(*shapes)
	if err != nil {
		return err
	}
	programs, err := opponents(paths, notes)
	if err != nil {
		return err
	}
	if len(chosen) == 0 && *model == "" {
		return fmt.Errorf("nothing to compare: give --model or --shapes: %w", comparison.ErrUsage)
	}

	var user *decoder
	if *model != "" {
		if user, err = openModel(ctx, *model, stderr); err != nil {
			return err
		}
		defer user.close()
		own, err := shapeOf(user.config)
		if err != nil {
			return err
		}
		// The model runs beside the shape of its sizes, which comes first.
		chosen = slices.DeleteFunc(chosen, own.sameSizes)
		chosen = append([]Shape{own}, chosen...)
	}
	dir, err := os.MkdirTemp("", "chiplm-bench-runq-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &Result{CPU: bench.CPUModel(), Opponents: programs, Rounds: *rounds, Seconds: *seconds}
	c := contest{rounds: *rounds, seconds: *seconds, log: stderr}
	for i, s := range chosen {
		beside := user
		if i > 0 {
			beside = nil
		}
		g, err := compare(ctx, c, s, programs, beside, dir)
		if ctx.Err() != nil {
			return errors.New("the comparison was stopped; figures need all rounds: start it again")
		}
		if err != nil {
			return err
		}
		r.Groups = append(r.Groups, *g)
	}
	if *asJSON {
		return jsonout.Write(stdout, r)
	}
	return r.write(stdout)
}

func shapeNames() (names []string) {
	for _, s := range builtin {
		names = append(names, s.Name)
	}
	return names
}

// choose finds shapes by their names, with commas between.
func choose(names string) (chosen []Shape, err error) {
	if names == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.Index(shapeNames(), strings.TrimSpace(name))
		if i < 0 {
			return nil, fmt.Errorf("--shapes %q: there is no shape %q; give some of %s: %w", names, name, strings.Join(shapeNames(), ","), comparison.ErrUsage)
		}
		if !slices.Contains(chosen, builtin[i]) {
			chosen = append(chosen, builtin[i])
		}
	}
	return chosen, nil
}

// compare holds the contest on one shape: every opponent, chiplm with the same random weights in 4 and in 8 bits, and
// user's model if there is one. dir is a folder for files.
func compare(ctx context.Context, c contest, s Shape, programs []Opponent, user *decoder, dir string) (*Group, error) {
	n := network{model: filepath.Join(dir, s.Name+".bin"), tokenizer: filepath.Join(dir, s.Name+"-tokenizer.bin"), context: s.Context}
	wide, err := s.config(8)
	if err != nil {
		return nil, err
	}
	weights := randomWeights(wide)
	if err := writeFile(n.model, func(w io.Writer) error { return writeModel(w, s, weights) }); err != nil {
		return nil, err
	}
	defer os.Remove(n.model)
	if err := writeFile(n.tokenizer, func(w io.Writer) error { return writeTokenizer(w, s.Vocab) }); err != nil {
		return nil, err
	}
	defer os.Remove(n.tokenizer)

	var entrants []entrant
	for _, o := range programs {
		entrants = append(entrants, entrant{Program: o.Name, Bits: 8, MACs: macs(wide), tokens: s.Context - 1,
			run: func(ctx context.Context) (float64, error) { return o.run(ctx, n, nil) }})
	}
	add := func(d *decoder, model string) {
		entrants = append(entrants, entrant{Program: chiplmName, Model: model, Bits: d.config.Quant.Weights.Bits, MACs: macs(d.config),
			tokens: d.config.ContextLength - 1, run: func(context.Context) (float64, error) { return d.run() }})
	}
	g := &Group{Shape: s}
	for _, bits := range []int{4, 8} {
		config, err := s.config(bits)
		if err != nil {
			return nil, err
		}
		d, err := randomDecoder(ctx, config, weights)
		if err != nil {
			return nil, err
		}
		defer d.close()
		add(d, "")
		if bits == 8 {
			if g.Agreement, err = sameNetwork(ctx, d, programs, n); err != nil {
				return nil, err
			}
		}
	}
	if user != nil {
		add(user, user.config.Name)
	}
	if g.Rows, err = c.hold(ctx, s.Name, entrants); err != nil {
		return nil, err
	}
	return g, nil
}

// sameNetwork makes sure that every opponent runs the whole sequence on the network that d runs: it must write as many
// tokens as it is asked for, and most of them must be the likeliest ones for d as well. Few differ where two logits are
// close, for the programs round differently. It gives the number of tokens in common with the opponent that has the
// fewest.
func sameNetwork(ctx context.Context, d *decoder, programs []Opponent, n network) (int, error) {
	least := n.context
	for _, o := range programs {
		ids, err := o.ids(ctx, n)
		if err != nil {
			return 0, err
		}
		same, err := d.agreement(ids)
		if err != nil {
			return 0, err
		}
		if same < n.context/2 {
			return 0, fmt.Errorf("%s: of %d tokens that it wrote only %d are the likeliest for chiplm: it does not run the network that it was given; is it llama2.c's runq?",
				o.Path, n.context, same)
		}
		least = min(least, same)
	}
	return least, nil
}
