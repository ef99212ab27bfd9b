package train

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
)

// taught are the options of a run that learns from another one, which is trained here.
func taught(t *testing.T) (o Options, teacher *Summary) {
	t.Helper()
	o = tinyOptions(t)
	first := o
	first.Name, first.Sets = "wide", []string{"d_model=32", "quant.weights.bits=32", "quant.activations.bits=32", "train.seed=5"}
	teacher = mustRun(t, first)
	o.Teacher, o.Sets = "wide", []string{"train.distill=0.5"}
	return o, teacher
}

// TestTaughtRun: a teacher changes what is learned, a stopped run goes on with it to the same bytes, and the checkpoint
// knows it.
func TestTaughtRun(t *testing.T) {
	o, teacher := taught(t)
	sum := mustRun(t, o)
	c, err := checkpoints.Load(sum.Run)
	if err != nil {
		t.Fatal(err)
	}
	if c.State.TeacherHash != teacher.ModelSHA256 || c.State.Teacher != teacher.Run {
		t.Errorf("the state says %q (%.12s), the teacher is %q (%.12s)", c.State.Teacher, c.State.TeacherHash, teacher.Run, teacher.ModelSHA256)
	}
	alone := o
	alone.Name, alone.Teacher, alone.Sets = "alone", "", nil
	if mustRun(t, alone).ModelSHA256 == sum.ModelSHA256 {
		t.Error("the teacher changed nothing")
	}
	for workers := range 3 {
		other := o
		other.Name, other.Workers = fmt.Sprint("stopped", workers), workers+1
		runUntil(t, other, "valid step=4")
		resumed := Options{Out: o.Out, Resume: true, Run: other.Name}
		if got := mustRun(t, resumed).ModelSHA256; got != sum.ModelSHA256 {
			t.Errorf("stopped and resumed with %d workers: weights %.12s, in one go %.12s", other.Workers, got, sum.ModelSHA256)
		}
	}
}

func TestTeacherRefusals(t *testing.T) {
	o, teacher := taught(t)
	change := func(f func(*Options)) Options {
		c := o
		f(&c)
		return c
	}
	refused(t, change(func(o *Options) { o.Teacher = "" }), "train.distill", "--teacher")
	refused(t, change(func(o *Options) { o.Sets = nil }), "--teacher", "train.distill is 0")
	refused(t, change(func(o *Options) { o.Teacher = "wild" }), "--teacher", "wide")
	refused(t, change(func(o *Options) { o.Sets = append(o.Sets, "context_length=32") }), "context_length of 16", "32")
	refused(t, change(func(o *Options) { o.Sets = append(o.Sets, "train.distill=1.5") }), "train.distill")
	refused(t, change(func(o *Options) { o.Sets = append(o.Sets, "vocab_size=320") }), "the teacher", "vocab_size is 320", "--set vocab_size=")
	foreign := o
	foreign.Name, foreign.Teacher, foreign.Sets, foreign.Corpus = "foreign", "", nil, "builtin:2:60"
	tokens := filepath.Join(mustRun(t, foreign).Checkpoint, "tokenizer.json")
	refused(t, change(func(o *Options) { o.Tokenizer = tokens }), "another tokenizer", "--tokenizer", filepath.Join(teacher.Checkpoint, "tokenizer.json"))
	refused(t, change(func(o *Options) { o.Teacher = "released/combo" }), "released models teach no run here")

	first := mustRun(t, o)
	other := o
	other.Name, other.Teacher, other.Sets = "narrow", "", []string{"d_model=8"}
	mustRun(t, other)
	resume := Options{Out: o.Out, Resume: true, Run: first.Run, Teacher: "narrow"}
	refused(t, resume, "the teacher", "--force")
	resume.Force = true
	if _, err := Run(t.Context(), resume, io.Discard, true); err != nil {
		t.Error(err)
	}
}

// TestTeacherThatTrainsOn: a teacher that is not at its end is told of, and its pupil goes on with the checkpoint that taught,
// as long as that is there.
func TestTeacherThatTrainsOn(t *testing.T) {
	o, _ := taught(t)
	young := o
	young.Name, young.Teacher, young.Sets = "young", "", []string{"train.seed=6", "train.save_every=4", "train.keep_last=9"}
	runUntil(t, young, "valid step=4")
	o.Teacher, o.Name = "young", "whole"
	var log bytes.Buffer
	whole, err := Run(t.Context(), o, &log, false)
	if err != nil || !strings.Contains(log.String(), "the teacher "+filepath.Join(o.Out, "young")+" is at step 4 of 12, not trained to its end") {
		t.Fatalf("%v\n%s", err, &log)
	}
	o.Name = "stopped"
	runUntil(t, o, "valid step=4")
	mustRun(t, Options{Out: o.Out, Resume: true, Run: "young"})
	resume := Options{Out: o.Out, Resume: true, Run: "stopped"}
	if got := mustRun(t, resume); got.ModelSHA256 != whole.ModelSHA256 {
		t.Errorf("the teacher was trained on, and its pupil has the weights %.12s and not %.12s", got.ModelSHA256, whole.ModelSHA256)
	}
	o.Name = "late"
	o.Teacher = filepath.Join(o.Out, "young", checkpoints.StepName(4))
	runUntil(t, o, "valid step=4")
	if err := os.RemoveAll(o.Teacher); err != nil {
		t.Fatal(err)
	}
	resume.Run, resume.Teacher = "late", "young"
	refused(t, resume, "at step 12 has other weights", "at step 4 (")
}

// TestTeacherBringsItsTokenizer: a pupil of another text has the tokens of its teacher.
func TestTeacherBringsItsTokenizer(t *testing.T) {
	o, teacher := taught(t)
	o.Corpus = "builtin:2:60"
	if got := mustRun(t, o).TokenizerHash; got != teacher.TokenizerHash {
		t.Errorf("the pupil's tokenizer is %.12s, the teacher's %.12s", got, teacher.TokenizerHash)
	}
}

// TestTaughtStepsGiveTheSameBytes: as without a teacher, however many workers there are.
func TestTaughtStepsGiveTheSameBytes(t *testing.T) {
	var want uint64
	for workers := 1; workers <= 3; workers++ {
		cfg := tinyConfig()
		cfg.Train.Distill, cfg.Train.StoriesApart, cfg.Quant.StartStep = 0.7, true, 2
		w, big := arch.InitWeights(cfg, 1), *cfg
		big.DModel, big.PLEDim = 16, 4
		tr, err := NewTrainer(cfg, w.Data, ArchBuilder(cfg, w), fakeFor(cfg), workers)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		if workers == 1 {
			if _, err := tr.Step(t.Context()); err == nil {
				t.Error("a step is taken without the teacher that the settings ask for")
			}
		}
		tr.Learn(ArchBuilder(&big, arch.InitWeights(&big, 2)))
		for range 4 {
			if _, err := tr.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if workers == 1 {
			want = digest(w.Data)
		} else if got := digest(w.Data); got != want {
			t.Errorf("with %d workers the digest is %#x, with one %#x", workers, got, want)
		}
	}
}

// TestTeacherIsAskedForTheSameBatch: the teacher's graphs have the shape of the trainer's, keep logits and have no gradients.
func TestTeacherIsAskedForTheSameBatch(t *testing.T) {
	cfg := tinyConfig()
	cfg.Train.Distill = 0.5
	tr, m := newFakeTrainer(t, cfg, 2)
	teacher := &fakeModel{weights: tinyWeights(cfg)}
	tr.Learn(teacher.build)
	if _, err := tr.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, opt := range teacher.built {
		if opt.Batch != cfg.Train.MicroBatch || opt.Seq != cfg.ContextLength || !opt.Logits || opt.Train || opt.Float {
			t.Errorf("the teacher's graph %d is %+v", i, opt)
		}
	}
	if len(teacher.built) != 2 || len(m.built) != 2 || m.built[0].Distill != 0.5 {
		t.Errorf("built %+v and of the teacher %+v", m.built, teacher.built)
	}
}

// TestTeacherIsHeardLate: before its share of the steps a teacher changes no byte and has no graph, after it it has both.
func TestTeacherIsHeardLate(t *testing.T) {
	run := func(set func(*configs.Config)) (digests []uint64) {
		cfg := tinyConfig()
		set(cfg)
		cfg.Train.Tokens = 4 * int64(cfg.Train.BatchTokens)
		w := arch.InitWeights(cfg, 1)
		tr, err := NewTrainer(cfg, w.Data, ArchBuilder(cfg, w), fakeFor(cfg), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		built := 0
		if cfg.Train.Distill > 0 {
			teach := ArchBuilder(cfg, arch.InitWeights(cfg, 2))
			tr.Learn(func(opt arch.Options) (Graph, error) { built++; return teach(opt) })
		}
		for step := range 4 {
			if _, err := tr.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want := cfg.Train.Distill > 0 && step >= cfg.UntaughtSteps(); (built > 0) != want {
				t.Errorf("after step %d of %d, %d graphs of the teacher were built", step, cfg.UntaughtSteps(), built)
			}
			digests = append(digests, digest(w.Data))
		}
		return digests
	}
	alone := run(func(*configs.Config) {})
	late := run(func(cfg *configs.Config) { cfg.Train.Distill, cfg.Train.DistillStart = 0.5, 0.5 })
	for step := range alone {
		if same := alone[step] == late[step]; same != (step < 2) {
			t.Errorf("after step %d of 4, with a teacher from half of them on, weights equal those without one: %v", step+1, same)
		}
	}
}
