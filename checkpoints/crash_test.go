package checkpoints

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// faultyDisk fails its operation number failAt; when dead, every later one too, as if the process had been killed
// there. A failing write writes half. It counts the syncs and leaves them out, for speed: no power fails here.
type faultyDisk struct {
	realDisk
	count, failAt int
	dead          bool
}

var errFault = errors.New("no space left on device")

func (d *faultyDisk) fails() bool {
	d.count++
	return d.count == d.failAt || d.dead && d.count > d.failAt
}

func (d *faultyDisk) MkdirAll(path string) error {
	if d.fails() {
		return errFault
	}
	return d.realDisk.MkdirAll(path)
}

func (d *faultyDisk) Mkdir(path string) error {
	if d.fails() {
		return errFault
	}
	return d.realDisk.Mkdir(path)
}

func (d *faultyDisk) Rename(from, to string) error {
	if d.fails() {
		return errFault
	}
	return d.realDisk.Rename(from, to)
}

func (d *faultyDisk) SyncDir(path string) error {
	if d.fails() {
		return errFault
	}
	return nil
}

func (d *faultyDisk) RemoveAll(path string) error {
	if d.fails() {
		return errFault
	}
	return d.realDisk.RemoveAll(path)
}

func (d *faultyDisk) Create(path string) (file, error) {
	if d.fails() {
		return nil, errFault
	}
	f, err := d.realDisk.Create(path)
	return &faultyFile{f, d}, err
}

type faultyFile struct {
	file
	disk *faultyDisk
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if f.disk.fails() {
		n, _ := f.file.Write(b[:len(b)/2])
		return n, errFault
	}
	return f.file.Write(b)
}

func (f *faultyFile) Sync() error {
	if f.disk.fails() {
		return errFault
	}
	return nil
}

func (f *faultyFile) Close() error {
	err := f.file.Close()
	if f.disk.fails() {
		return errFault
	}
	return err
}

// quickSave is Save without the wait for the disk.
func quickSave(t *testing.T, run string, c *Checkpoint, keep int) {
	t.Helper()
	if _, err := save(&faultyDisk{}, run, c, keep); err != nil {
		t.Fatal(err)
	}
}

// operations counts what a save into a run with one checkpoint does.
func operations(t *testing.T) int {
	run := t.TempDir()
	quickSave(t, run, sample(t, 1), 1)
	d := &faultyDisk{}
	if _, err := save(d, run, sample(t, 2), 1); err != nil {
		t.Fatal(err)
	}
	return d.count
}

// Whichever single operation fails, the save says so and leaves the run as it was.
func TestAFailingDisk(t *testing.T) {
	n := operations(t)
	if n < 35 {
		t.Fatalf("only %d operations were counted", n)
	}
	for at := 1; at <= n; at++ {
		run := t.TempDir()
		quickSave(t, run, sample(t, 1), 1)
		dir, err := save(&faultyDisk{failAt: at}, run, sample(t, 2), 1)
		if !errors.Is(err, errFault) {
			t.Fatalf("operation %d of %d fails: have %v", at, n, err)
		}
		left := folders(t, run)
		if dir != "" { // the checkpoint was in place, and clearing the old one away failed
			mustBe(t, run, 2)
			continue
		}
		mustBe(t, run, 1)
		if !slices.Equal(left, []string{"step-00000001"}) {
			t.Fatalf("operation %d of %d fails: left %v", at, n, left)
		}
	}
}

// A failed save claims no checkpoint that is not there.
func TestAFailedSaveSaysWhatIsLeft(t *testing.T) {
	run := t.TempDir()
	for _, want := range []string{"the run holds no checkpoint yet", "earlier checkpoints are untouched, the newest is step-00000001"} {
		if _, err := save(&faultyDisk{failAt: 8, dead: true}, run, sample(t, 2), 1); !errors.Is(err, errFault) || !strings.Contains(err.Error(), want) {
			t.Errorf("have %v, want %s", err, want)
		}
		quickSave(t, run, sample(t, 1), 1)
	}
}

// Wherever the process dies, the run holds the old checkpoint or the new one, whole, and the next save goes well.
func TestDeathAtEveryOperation(t *testing.T) {
	n := operations(t)
	old, fresh := 0, 0
	for at := 1; at <= n; at++ {
		run := t.TempDir()
		quickSave(t, run, sample(t, 1), 1)
		if _, err := save(&faultyDisk{failAt: at, dead: true}, run, sample(t, 2), 1); !errors.Is(err, errFault) {
			t.Fatalf("dead at operation %d of %d: have %v", at, n, err)
		}
		got, err := Load(run)
		if err != nil {
			t.Fatalf("dead at operation %d of %d: %v", at, n, err)
		}
		mustBe(t, run, got.State.Step)
		if got.State.Step == 1 {
			old++
		} else {
			fresh++
		}
		quickSave(t, run, sample(t, 2), 1)
		mustBe(t, run, 2)
		if left := folders(t, run); len(left) != 1 {
			t.Fatalf("dead at operation %d of %d: the next save left %v", at, n, left)
		}
	}
	if old == 0 || fresh == 0 {
		t.Errorf("%d deaths left the old checkpoint, %d the new one", old, fresh)
	}
}

// A reader beside a training process that keeps one checkpoint always finds one, whole.
func TestLoadBesideSaves(t *testing.T) {
	run := t.TempDir()
	mustSave(t, run, sample(t, 1), 1)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for step := 2; ; step++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if _, err := save(&faultyDisk{}, run, sample(t, step), 1); err != nil {
				stopped <- err
				return
			}
		}
	}()
	last := 0
	for range 60 {
		got, err := Load(run)
		if err != nil {
			t.Error(err)
			break
		}
		if got.State.Step < last {
			t.Errorf("step %d after step %d", got.State.Step, last)
		}
		last = got.State.Step
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// saveForever is the process that TestKill kills: it prints the number of each step once it is saved.
func saveForever(t *testing.T, run string) {
	first := 1
	if c, err := Load(run); err == nil {
		first = c.State.Step + 1
	} else if !errors.Is(err, ErrNone) && !errors.Is(err, fs.ErrNotExist) {
		fmt.Println("error", err)
		return
	}
	lock, err := Lock(run)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	defer lock.Unlock()
	for step := first; ; step++ {
		if _, err := Save(run, sample(t, step), 2); err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Println("saved", step)
	}
}

// A process that saves without pause is killed at random moments; what it said was saved is never lost, and what is
// loaded is always whole.
func TestKill(t *testing.T) {
	if run := os.Getenv("CHIPLM_TEST_SAVE_FOREVER"); run != "" {
		saveForever(t, run)
		return
	}
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	run := filepath.Join(t.TempDir(), "run")
	random := rand.New(rand.NewPCG(1, 2))
	promised := 0
	for round := range rounds {
		child := exec.Command(os.Args[0], "-test.run=^TestKill$")
		child.Env = append(os.Environ(), "CHIPLM_TEST_SAVE_FOREVER="+run)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			word, rest, _ := strings.Cut(lines.Text(), " ")
			if word == "error" {
				t.Fatalf("round %d: %s", round, rest)
			}
			if step, err := strconv.Atoi(rest); word == "saved" && err == nil {
				if promised == 0 || step > promised {
					promised = step
				}
				if random.IntN(3) == 0 {
					break
				}
			}
		}
		time.Sleep(time.Duration(random.IntN(6000)) * time.Microsecond)
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it still said before it died
			if rest, ok := strings.CutPrefix(lines.Text(), "saved "); ok {
				if step, err := strconv.Atoi(rest); err == nil {
					promised = max(promised, step)
				}
			}
		}
		if err := child.Wait(); err == nil {
			t.Fatalf("round %d: the process ended by itself", round)
		}
		got, err := Load(run)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if got.State.Step < promised {
			t.Fatalf("round %d: step %d was saved, step %d is there", round, promised, got.State.Step)
		}
		mustBe(t, run, got.State.Step)
	}
	if promised < rounds {
		t.Errorf("only %d saves in %d rounds", promised, rounds)
	}
}
