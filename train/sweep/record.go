package sweep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/data/shards"
	"github.com/chiplm/chiplm/eval"
	"github.com/chiplm/chiplm/eval/results"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/cost"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/export/targets"
	"github.com/chiplm/chiplm/train"
)

const (
	countedStories = 200 // of the held-out ones, fed token by token to count what is read
	curvePoints    = 100 // of a training loss
	lastPart       = 10  // the training loss of a run is that of this part of its steps, the last
)

// tokenizerFile is where the tokenizer of a size of vocabulary is kept.
func (s *sweep) tokenizerFile(vocab int) string {
	return filepath.Join(s.dir, "tokenizers", fmt.Sprintf("%.12s-%d.json", s.corpus.Info().SHA256, vocab))
}

// prepare makes the tokenizers and the tokens that the runs left need, so that runs which start together do not all make
// them.
func (s *sweep) prepare(ctx context.Context) error {
	hashes := map[int]string{}
	for _, j := range s.jobs {
		vocab := j.cfg.VocabSize
		if j.settled() || hashes[vocab] != "" {
			continue
		}
		tok, err := s.tokenizer(ctx, vocab)
		if err != nil {
			return fmt.Errorf("arm %s: %w", j.arm.Name, err)
		}
		hashes[vocab] = tok.Hash()
		shard, err := shards.Build(ctx, s.corpus, tok, "", nil)
		if err != nil {
			return err
		}
		shard.Close()
	}
	for _, r := range s.before {
		for _, j := range s.jobs {
			now := hashes[j.cfg.VocabSize]
			if r.Arm == j.arm.Name && r.TokenizerSHA256 != "" && now != "" && r.TokenizerSHA256 != now {
				return fmt.Errorf("%s has runs of %s with another tokenizer of %d entries (SHA-256 %.12s, now %.12s), which do not belong "+
					"together: put that tokenizer.json back as %s, or change the name of the sweep",
					s.results, r.Arm, j.cfg.VocabSize, r.TokenizerSHA256, now, s.tokenizerFile(j.cfg.VocabSize))
			}
		}
	}
	return nil
}

// tokenizer reads the tokenizer of a size of vocabulary, or trains it.
func (s *sweep) tokenizer(ctx context.Context, vocab int) (*bpe.Tokenizer, error) {
	path := s.tokenizerFile(vocab)
	tok, err := bpe.Load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return tok, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	s.show.note("training a tokenizer of %d entries", vocab)
	if tok, err = bpe.Train(ctx, func(yield func([]byte) error) error { return s.corpus.Stories(ctx, yield) }, vocab); err != nil {
		return nil, err
	}
	return tok, regular.WriteFile(path, tok.JSON())
}

// line is the part of a run's line that is known before it is trained.
func (s *sweep) line(j *job) results.Run {
	corpus := s.corpus.Info()
	text, err := j.cfg.YAML()
	if err != nil {
		panic(err) // it was read from YAML
	}
	return results.Run{Sweep: s.study.Name, Arm: j.arm.Name, Order: j.order, Baseline: s.study.Baseline, Seed: j.seed, Folder: j.dir,
		Program: checkpoints.ProgramVersion(), Config: string(text), ConfigSHA256: j.cfg.Hash(), ArmSHA256: j.arm.hash, Teacher: j.arm.Teacher,
		CorpusSHA256: corpus.SHA256, Corpus: corpus.Name, HeldOut: s.heldOutOf(),
		Cost: results.Cost{Parameters: j.cfg.Parameters(), BytesPerToken: j.cfg.Budget().Total.TokenRead}}
}

// score scores a trained run, drops the optimiser's moments from its folder, and gives its line.
func (s *sweep) score(ctx context.Context, j *job, workers int) (*results.Run, error) {
	scored, err := eval.ScoreCheckpoint(ctx, j.dir, s.stories, workers, countedStories)
	if err != nil {
		return nil, err
	}
	r := s.line(j)
	r.TokenizerSHA256, r.ModelSHA256 = scored.TokenizerSHA256, scored.ModelSHA256
	if j.wise != nil {
		ck, err := checkpoints.LoadModel(j.dir)
		if err != nil {
			return nil, err
		}
		r.TeacherSHA256 = ck.State.TeacherHash
	}
	r.Quality = results.Quality{ScoredBy: "engine", Tokens: scored.Tokens, TextBytesPerToken: scored.TextBytesPerToken,
		NatsPerToken: scored.NatsPerToken, BitsPerByte: scored.BitsPerByte, BitsPerByteWithEnd: scored.BitsPerByteWithEnd}
	if scored.ByGraph {
		r.Quality.ScoredBy = "graph"
	}
	r.Cost.ImageBytes, r.Cost.MeasuredPer, r.Cost.LiveNeurons = scored.ImageBytes, scored.WeightsPerToken, scored.Live
	if s.chip != nil && !scored.ByGraph {
		if r.Cost.TokensPerSecond, err = predict(ctx, j.dir, s.chip); err != nil {
			return nil, fmt.Errorf("predicting the speed: %w", err)
		}
	}
	if r.Cost.TokensPerSecond > 0 {
		r.Cost.Target, r.Cost.TextPerSecond = s.chip.Name, r.Cost.TokensPerSecond*scored.TextBytesPerToken
	}
	if err := s.trained(&r, j, workers); err != nil {
		return nil, err
	}
	if err := dropMoments(j.dir); err != nil {
		s.show.note("%s: its moments stay on the disk: %v", j.name, err)
	}
	return &r, ctx.Err()
}

// predict gives the tokens a second that a chip is predicted to write, on average over the context; 0 when it cannot hold
// the model.
func predict(ctx context.Context, dir string, chip *targets.Target) (float64, error) {
	subject, err := cost.Find(ctx, "", dir, nil, chip, chip.Profile(""))
	if err == nil {
		var report *cost.Report
		if report, err = subject.Report(0, subject.Config.ContextLength-1); err == nil {
			return report.Cost.PerSec, nil
		}
	}
	if errors.Is(err, placement.ErrFit) {
		return 0, nil
	}
	return 0, err
}

// predictUntrained is [predict] of a model that is not trained yet, with reads that are assumed.
func predictUntrained(j *job, chip *targets.Target) (float64, error) {
	if export.Exportable(j.cfg) != nil {
		return 0, nil
	}
	subject := &cost.Subject{Source: j.name, Config: j.cfg, Target: chip, Profile: chip.Profile("")}
	report, err := subject.Report(0, j.cfg.ContextLength-1)
	if errors.Is(err, placement.ErrFit) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return report.Cost.PerSec, nil
}

// trained fills in how a run was trained.
func (s *sweep) trained(r *results.Run, j *job, workers int) error {
	records, err := train.ReadMetrics(j.dir)
	if err != nil {
		return err
	}
	tok, err := bpe.Load(s.tokenizerFile(j.cfg.VocabSize))
	if err != nil {
		return err
	}
	shard, err := shards.Build(context.Background(), s.corpus, tok, "", nil) // it is there
	if err != nil {
		return err
	}
	defer shard.Close()
	r.Training = results.Trained{CorpusTokens: shard.Header().Tokens, Workers: workers}
	var steps []results.Point
	for _, record := range records {
		switch {
		case record.Loss != nil:
			steps = append(steps, results.Point{Tokens: record.Tokens, Loss: *record.Loss})
			if record.TokensPerSecond != nil && *record.TokensPerSecond > 0 {
				r.Training.Seconds += float64(j.plan.TokensPerStep) / *record.TokensPerSecond
			}
		case record.ValidLoss != nil:
			r.ValidLoss = append(r.ValidLoss, results.Point{Tokens: record.Tokens, Loss: *record.ValidLoss})
		}
	}
	if len(steps) != j.plan.Steps {
		return fmt.Errorf("the metrics of %s have %d of %d steps: remove the folder to train it anew", j.dir, len(steps), j.plan.Steps)
	}
	r.Training.Steps, r.Training.Tokens = len(steps), steps[len(steps)-1].Tokens
	r.Training.Loss = mean(steps[len(steps)-(len(steps)+lastPart-1)/lastPart:])
	r.Curve = smooth(steps, curvePoints)
	return nil
}

// smooth makes at most n points of many: each is the mean over as many steps as the others, to within one, and stands at the
// last of them.
func smooth(steps []results.Point, n int) []results.Point {
	n = min(n, len(steps))
	out := make([]results.Point, n)
	for i := range out {
		part := steps[i*len(steps)/n : (i+1)*len(steps)/n]
		out[i] = results.Point{Tokens: part[len(part)-1].Tokens, Loss: mean(part)}
	}
	return out
}

func mean(points []results.Point) float64 {
	sum := 0.0
	for _, p := range points {
		sum += p.Loss
	}
	return sum / float64(len(points))
}

// dropMoments leaves one checkpoint in a run's folder, without the optimiser's moments, which are two thirds of it.
func dropMoments(dir string) error {
	ck, err := checkpoints.LoadModel(dir)
	if err != nil {
		return err
	}
	if !hasMoments(ck) {
		return nil
	}
	_, err = checkpoints.Save(dir, ck, 1)
	return err
}
