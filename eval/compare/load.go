package compare

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/eval/results"
)

// Group is an arm: runs that differ in their seed only, by ascending seed.
type Group struct {
	Name string
	Runs []results.Run
}

// Set is what result files hold.
type Set struct {
	Groups   []Group  // by name
	Baseline string   // name of the group that the sweeps name, empty when they name none or several, or one without a score
	Notes    []string // what was left out, and why

	failed []results.Run // that no file has a score of
	none   string        // why there is no Baseline
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
	var cut []string
	for _, path := range paths {
		some, err := results.Read(path)
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		without, err := results.Failures(path)
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		line, err := results.Cut(path)
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		if line > 0 {
			cut = append(cut, fmt.Sprintf("%s:%d: the last line is cut short, as by a crash, and is passed over; the next chiplm sweep writes that run anew",
				clean(path), line))
		}
		runs, failed = append(runs, some...), append(failed, without...)
	}
	s := gather(runs, failed)
	if len(s.Groups) == 0 {
		return nil, fmt.Errorf("read results: %s: no run with a score; %s", strings.Join(paths, ", "), s.empty(cut))
	}
	s.Notes = append(s.Notes, cut...)
	return s, nil
}

// empty says why there is nothing to compare, and what to do.
func (s *Set) empty(cut []string) string {
	if len(s.failed) == 0 && len(cut) == 0 {
		return "chiplm sweep writes them"
	}
	todo := ""
	var lines []string
	for _, f := range s.failed {
		lines = append(lines, fmt.Sprintf("%s (seed %d) failed: %s", clean(f.Arm), f.Seed, clean(f.Failure)))
		todo = "\nchange what makes them fail, or try them again with chiplm sweep FILE --retry"
	}
	return "there is only\n  " + strings.Join(append(lines, cut...), "\n  ") + todo
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
			s.failed = append(s.failed, f)
			s.note("%s (seed %d) failed and is in no mean: %s", clean(f.Arm), f.Seed, clean(f.Failure))
		}
	}
	slices.SortFunc(s.failed, func(a, b results.Run) int {
		return cmp.Or(strings.Compare(a.Arm, b.Arm), cmp.Compare(a.Seed, b.Seed), strings.Compare(a.Failure, b.Failure))
	})
	s.failed = slices.CompactFunc(s.failed, func(a, b results.Run) bool { // a file may be named twice
		return a.Arm == b.Arm && a.Seed == b.Seed && a.Failure == b.Failure
	})
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

	s.chooseBaseline(runs)
	return s
}

// chooseBaseline finds the arm that the sweeps name, or says why there is none. runs are those with a score.
func (s *Set) chooseBaseline(runs []results.Run) {
	wanted := map[string]string{} // by sweep; its last line counts
	for _, r := range slices.Concat(s.failed, runs) {
		wanted[r.Sweep] = r.Baseline
	}
	var named, without []string
	for _, g := range s.Groups {
		if slices.ContainsFunc(g.Runs, func(r results.Run) bool { return wanted[r.Sweep] == r.Arm }) {
			named = append(named, g.Name)
		}
	}
	for _, name := range wanted {
		if name == "" {
			continue
		}
		why := ", of which it has no line here"
		if lost := s.lost(func(arm string) bool { return arm == name }); lost != "" {
			why = ", which has only runs that failed, " + lost
		}
		without = append(without, clean(name)+why)
	}
	slices.Sort(without) // a map has no order
	without = slices.Compact(without)
	switch {
	case len(named) == 1:
		s.Baseline = named[0]
	case len(named) > 1:
		s.none = "the sweeps name several, " + strings.Join(named, " and ") + "; choose one with --baseline ARM"
	case len(without) > 0:
		s.none = "the sweep names " + strings.Join(without, "; another names ") + "; name another with --baseline ARM"
	default:
		s.none = "the sweep names none; name it with --baseline ARM"
	}
}

// lost lists the runs that failed of the arms that fit.
func (s *Set) lost(fits func(arm string) bool) string {
	var list []string
	for _, f := range s.failed {
		if fits(f.Arm) {
			list = append(list, fmt.Sprintf("%s (seed %d): %s", clean(f.Arm), f.Seed, clean(f.Failure)))
		}
	}
	return strings.Join(list, ", ")
}

// absent says what is wrong with a name that no arm of the table fits.
func (s *Set) absent(wrong string, fits func(arm string) bool) string {
	if lost := s.lost(fits); lost != "" {
		wrong = "has only runs that failed, " + lost
	}
	return wrong + "; there are " + strings.Join(s.names(), ", ")
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
		return "", usage.Errorf("--baseline %q %s", name, s.absent("is no arm", func(arm string) bool { return arm == name }))
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
		return usage.Errorf("--arms %q %s", patterns[at], s.absent("fits no arm", func(arm string) bool {
			fits, err := path.Match(patterns[at], arm)
			return err == nil && fits || arm == patterns[at]
		}))
	}
	s.Groups = kept
	return nil
}
