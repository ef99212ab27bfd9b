package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/chiplm/chiplm/data/regular"
)

// Read reads the scored runs of a file, in order. A last line without its end, left by a program that was killed, is
// skipped. It fails on a line that is no run, and names it.
func Read(path string) ([]Run, error) {
	all, err := readAll(path)
	return slices.DeleteFunc(all, func(r Run) bool { return r.Failure != "" }), err
}

// Failures reads the runs of a file that failed and have not been scored since, the last failure of each, in order.
func Failures(path string) ([]Run, error) {
	all, err := readAll(path)
	if err != nil {
		return nil, err
	}
	var failed []Run
	for i, r := range all {
		again := func(later Run) bool { return later.Arm == r.Arm && later.Seed == r.Seed }
		if r.Failure != "" && !slices.ContainsFunc(all[i+1:], again) {
			failed = append(failed, r)
		}
	}
	return failed, nil
}

func readAll(path string) ([]Run, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var runs []Run
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return runs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		run, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: not a line of results: %w; mend or remove the line", path, n, err)
		}
		runs = append(runs, run)
	}
}

// parse reads a line: one object of the known fields, of a run that says which it is.
func parse(line []byte) (run Run, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&run); err != nil {
		return Run{}, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Run{}, errors.New("something follows the run")
	}
	if run.Arm == "" {
		return Run{}, errors.New("it names no arm")
	}
	return run, nil
}

// Append adds a run to a file, which it makes when there is none. The line is on the disk when it returns. Appends wait
// for one another, those of other processes too.
func Append(path string, run Run) (err error) {
	line, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := lock(f); err != nil {
		return fmt.Errorf("%s: lock: %w", path, err)
	}
	end, err := wholeLines(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err := f.WriteAt(append(line, '\n'), end); err != nil {
		return errors.Join(err, f.Truncate(end))
	}
	return f.Sync()
}

// lock waits until no other append is at work on the file. Closing the file ends it.
func lock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

// wholeLines cuts off what follows the last end of a line, and says where that is.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	end := info.Size()
	block := make([]byte, 1<<16)
	for end > 0 {
		from := max(0, end-int64(len(block)))
		part := block[:end-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			end = from + int64(i) + 1
			break
		}
		end = from
	}
	if end == info.Size() {
		return end, nil
	}
	return end, f.Truncate(end)
}
