package compare

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/eval/results"
)

// largest bounds every figure of a run: sums of squares stay finite, and no honest figure comes near.
const largest = 1e15

// Group is an arm: runs that differ in their seed only, by ascending seed.
type Group struct {
	Name string
	Runs []results.Run
}

// Set is what result files hold.
type Set struct {
	Groups   []Group  // by name
	Baseline string   // name of the group that the sweeps name, empty when they name none or several
	Notes    []string // what was left out, and why
}

// identity is what the runs of one arm have in common.
type identity struct{ arm, config, tokenizer, corpus, by string }

func identify(r results.Run) identity {
	return identity{r.Arm, r.ArmSHA256, r.TokenizerSHA256, r.CorpusSHA256, r.Quality.ScoredBy}
}

// Load reads result files. Neither the order of the files nor that of their lines matters, but that of two runs of the same
// arm and seed the later counts.
func Load(paths []string) (*Set, error) {
	var runs, failed []results.Run
	for _, path := range paths {
		some, err := results.Read(path)
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		without, err := results.Failures(path)
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		failed = append(failed, without...)
		for i, r := range some {
			if err := check(r); err != nil {
				return nil, fmt.Errorf("read results: %s: run %d, %s (seed %d): %w", path, i+1, clean(r.Arm), r.Seed, err)
			}
		}
		runs = append(runs, some...)
	}
	s := gather(runs, failed)
	if len(s.Groups) == 0 {
		return nil, fmt.Errorf("read results: %s: no run with a score; chiplm sweep writes them", strings.Join(paths, ", "))
	}
	return s, nil
}

// check refuses what no run can have. A run without a score is one that failed, and passes.
func check(r results.Run) error {
	if strings.TrimSpace(r.Arm) == "" {
		return fmt.Errorf("the arm has no name")
	}
	q, c, t := r.Quality, r.Cost, r.Training
	for name, v := range map[string]float64{
		"bits_per_byte": q.BitsPerByte, "nats_per_token": q.NatsPerToken, "text_bytes_per_token": q.TextBytesPerToken,
		"parameters": float64(c.Parameters), "image_bytes": float64(c.ImageBytes), "bytes_per_token": float64(c.BytesPerToken),
		"measured_per_token": c.MeasuredPer, "tokens_per_second": c.TokensPerSecond, "text_bytes_per_second": c.TextPerSecond,
		"training.tokens": float64(t.Tokens), "training.loss": t.Loss,
	} {
		if !(v >= 0 && v <= largest) {
			return fmt.Errorf("%s is %g: not a possible figure; score the run again", name, v)
		}
	}
	if q.BitsPerByte > 0 && q.TextBytesPerToken == 0 {
		return fmt.Errorf("text_bytes_per_token is 0 beside a score of %g bits per byte; score the run again", q.BitsPerByte)
	}
	for _, p := range r.Curve {
		if !(math.Abs(p.Loss) <= largest) || p.Tokens < 0 || p.Tokens > largest {
			return fmt.Errorf("the curve has the point %d, %g: not a possible loss", p.Tokens, p.Loss)
		}
	}
	return nil
}

// gather sorts runs into arms, and notes those that failed.
func gather(runs, failed []results.Run) *Set {
	s := &Set{}
	type key struct {
		identity
		seed    int64
		heldOut string // a score on other stories replaces none: it is refused beside it
	}
	latest := map[key]results.Run{}
	for _, r := range runs {
		if r.Quality.BitsPerByte == 0 {
			s.note("%s (seed %d) has no score and is left out", clean(r.Arm), r.Seed)
			continue
		}
		k := key{identify(r), r.Seed, fmt.Sprint(r.HeldOut.SHA256, r.HeldOut.Bytes, r.HeldOut.Stories)}
		if old, ok := latest[k]; ok && (old.ModelSHA256 != r.ModelSHA256 || old.Quality != r.Quality) {
			s.note("%s (seed %d) is there more than once with other scores; the last counts", clean(r.Arm), r.Seed)
		}
		latest[k] = r
	}
	for _, f := range failed {
		// Another file may hold the run that went well.
		scored := func(r results.Run) bool { return r.Arm == f.Arm && r.Seed == f.Seed && r.ArmSHA256 == f.ArmSHA256 }
		if !slices.ContainsFunc(runs, scored) {
			s.note("%s (seed %d) failed and is in no mean: %s", clean(f.Arm), f.Seed, clean(f.Failure))
		}
	}
	byIdentity := map[identity][]results.Run{}
	for k, r := range latest {
		byIdentity[k.identity] = append(byIdentity[k.identity], r)
	}
	for _, group := range byIdentity {
		slices.SortFunc(group, func(a, b results.Run) int {
			return cmp.Or(cmp.Compare(a.Seed, b.Seed), strings.Compare(a.HeldOut.SHA256, b.HeldOut.SHA256))
		})
		s.Groups = append(s.Groups, Group{Name: clean(group[0].Arm), Runs: group})
	}
	slices.SortFunc(s.Groups, func(a, b Group) int { // before names are made: a map has no order
		return strings.Compare(fmt.Sprintf("%q", identify(a.Runs[0])), fmt.Sprintf("%q", identify(b.Runs[0])))
	})
	qualify(s.Groups)
	slices.SortFunc(s.Groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(s.Notes)
	s.Notes = slices.Compact(s.Notes)

	baseline := map[string]string{} // by sweep; its last line counts
	for _, r := range runs {
		baseline[r.Sweep] = r.Baseline
	}
	named := map[string]bool{}
	for _, g := range s.Groups {
		for _, r := range g.Runs {
			if baseline[r.Sweep] == r.Arm {
				named[g.Name] = true
			}
		}
	}
	if len(named) == 1 {
		for name := range named {
			s.Baseline = name
		}
	}
	return s
}

func (s *Set) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// qualify tells arms of one name apart: by their sweep, and where that does not do, by what their runs were made from.
func qualify(groups []Group) {
	steps := []func(results.Run) string{
		func(r results.Run) string { return clean(r.Sweep) + "/" + clean(r.Arm) },
		func(r results.Run) string {
			return fmt.Sprintf("%s/%s@%.6s", clean(r.Sweep), clean(r.Arm), clean(r.ArmSHA256))
		},
		func(r results.Run) string {
			return fmt.Sprintf("%s/%s@%.6s+%.6s+%.6s+%s", clean(r.Sweep), clean(r.Arm), clean(r.ArmSHA256), clean(r.TokenizerSHA256),
				clean(r.CorpusSHA256), clean(r.Quality.ScoredBy))
		},
	}
	for _, name := range steps {
		count := map[string]int{}
		for _, g := range groups {
			count[g.Name]++
		}
		for i, g := range groups {
			if count[g.Name] > 1 {
				groups[i].Name = name(g.Runs[0])
			}
		}
	}
	seen := map[string]int{}
	for i, g := range groups { // names that differ in what cannot be printed
		if seen[g.Name]++; seen[g.Name] > 1 {
			groups[i].Name = fmt.Sprintf("%s#%d", g.Name, seen[g.Name])
		}
	}
}

// names lists the arms.
func (s *Set) names() []string {
	var all []string
	for _, g := range s.Groups {
		all = append(all, g.Name)
	}
	return all
}

// find gives the name of the one arm that is meant: by its name in the table, or by the sweep's name of it where only one
// has that.
func (s *Set) find(name string) (string, error) {
	var found []string
	for _, g := range s.Groups {
		if g.Name == name {
			return name, nil
		}
		if g.Runs[0].Arm == name {
			found = append(found, g.Name)
		}
	}
	switch len(found) {
	case 0:
		return "", usage.Errorf("--baseline %q is no arm; there are %s", name, strings.Join(s.names(), ", "))
	case 1:
		return found[0], nil
	}
	return "", usage.Errorf("--baseline %q may be %s: name one of them", name, strings.Join(found, " or "))
}

// Choose keeps the arms that a pattern fits (as of a shell, with * and ?), and the baseline.
func (s *Set) Choose(patterns []string, baseline string) error {
	if len(patterns) == 0 {
		return nil
	}
	used := make([]bool, len(patterns))
	var kept []Group
	for _, g := range s.Groups {
		keep := g.Name == baseline
		for i, p := range patterns {
			for _, name := range []string{g.Name, g.Runs[0].Arm} {
				fits, err := path.Match(p, name)
				if err != nil {
					return usage.Errorf("--arms %q is no pattern: %w", p, err)
				}
				if fits || p == name {
					keep, used[i] = true, true
				}
			}
		}
		if keep {
			kept = append(kept, g)
		}
	}
	if at := slices.Index(used, false); at >= 0 {
		return usage.Errorf("--arms %q fits no arm; there are %s", patterns[at], strings.Join(s.names(), ", "))
	}
	s.Groups = kept
	return nil
}
