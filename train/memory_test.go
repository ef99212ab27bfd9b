package train

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
)

// TestPredictedMemoryIsWhatGraphsTake holds the estimate against what building a graph asks the runtime for.
func TestPredictedMemoryIsWhatGraphsTake(t *testing.T) {
	for _, sets := range [][]string{
		nil,
		{"ple_dim=0"},
		{"experts=4", "ple_dim=0"},
		{"context_length=512", "train.batch_tokens=2048"},
		{"tie_embeddings=false", "vocab_size=4096"},
		{"quant.weights.bits=32", "quant.activations.bits=32", "d_ff=1024"},
		{"n_layers=9"},
		{"ngram_rows=65536"},
	} {
		cfg, err := configs.Load("builtin:demo.yaml", sets...)
		if err != nil {
			t.Fatal(err)
		}
		w := arch.InitWeights(cfg, 1)
		for _, train := range []bool{true, false} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			g, err := arch.Build(cfg, w, arch.Options{Batch: cfg.Train.MicroBatch, Seq: cfg.ContextLength, Train: train})
			if err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			took := float64(after.TotalAlloc - before.TotalAlloc)
			if ratio := 4 * graphFloats(cfg, train) / took; ratio < 0.8 || ratio > 1.4 {
				t.Errorf("%v, training %v: predicted %.3f of the %.1f MB taken", sets, train, ratio, took/1e6)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestTooLargeForTheMemoryIsRefusedAtOnce(t *testing.T) {
	if freeMemory().bytes == 0 {
		t.Skip("free memory is not known here")
	}
	o := tinyOptions(t, "context_length=32768", "train.batch_tokens=33554432", "train.micro_batch=1024", "train.tokens=33554432")
	refused(t, o, "memory", "train.micro_batch=1024", "context_length=32768", " MB are left", "--workers 1 it would be about")
	if _, err := os.Stat(filepath.Join(o.Out, "tiny")); !os.IsNotExist(err) {
		t.Errorf("a refused run left a folder (%v)", err)
	}
}

func TestCheckMemory(t *testing.T) {
	cfg := tinyConfig()
	need := predictMemory(cfg, 2)
	for _, test := range []struct {
		free    memory
		refused bool
	}{{memory{}, false}, {memory{need + 1, "x"}, false}, {memory{need - 1, "x"}, true}} {
		if err := checkMemory(cfg, 2, test.free); (err != nil) != test.refused {
			t.Errorf("%v free for %v: %v", test.free.bytes, need, err)
		}
	}
}

// A teacher takes memory of its own, and a run that fits alone may not fit with it.
func TestCheckTeacher(t *testing.T) {
	cfg := tinyConfig()
	big := *cfg
	big.DModel, big.ContextLength = 64, 600
	need := predictMemory(cfg, 2) + teacherMemory(cfg, &big, 2)
	if most := predictMemory(cfg, 2) + 1e6*4; need <= predictMemory(cfg, 2) || need > most {
		t.Errorf("with its teacher it takes %v bytes, %v without", need, predictMemory(cfg, 2))
	}
	for _, test := range []struct {
		teacher *teacher
		free    memory
		refused bool
	}{
		{&teacher{path: "big", cfg: &big}, memory{}, false},
		{&teacher{path: "big", cfg: &big}, memory{need + 1, "x"}, false},
		{&teacher{path: "big", cfg: &big}, memory{need - 1, "x"}, true},
		{nil, memory{1, "x"}, false},
	} {
		if err := checkTeacher(cfg, test.teacher, 2, test.free); (err != nil) != test.refused {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestSystemMemory(t *testing.T) {
	const meminfo, unlimited = "MemTotal: 100 kB\nMemAvailable:   50 kB\n", "9223372036854771712\n"
	for i, test := range []struct {
		files map[string]string
		want  float64
	}{
		{nil, 0},
		{map[string]string{"proc/meminfo": meminfo}, 51200},
		{map[string]string{"proc/meminfo": "MemAvailable: lots\n"}, 0},
		{map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
			"sys/fs/cgroup/a/memory.max": "9000\n", "sys/fs/cgroup/a/memory.stat": "anon 1000\nfile 7000\n"}, 8000},
		{map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/elsewhere\n", "sys/fs/cgroup/memory.max": "70\n"}, 70},
		{map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "3:cpu,memory:/\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "600\n", "sys/fs/cgroup/memory/memory.stat": "total_rss 700\n"}, 1},
		{map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "3:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": unlimited}, 51200},
		{map[string]string{"proc/self/cgroup": "nonsense\n"}, 0},
	} {
		root := fstest.MapFS{}
		for name, text := range test.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := systemMemory(root); got.bytes != test.want || (got.source == "") != (test.want == 0) {
			t.Errorf("%d: %s, want %v", i, fmt.Sprint(got), test.want)
		}
	}
}
