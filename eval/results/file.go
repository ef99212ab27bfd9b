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

// File is the name of the results in the folder of a sweep.
const File = "results.jsonl"

// Read reads the scored runs of a file, in order. A last line that was cut short, by a program that was killed, is skipped
// ([Cut] tells of it). It fails on a line that is no run, and names it.
func Read(path string) ([]Run, error) {
	all, _, err := readAll(path)
	return slices.DeleteFunc(all, func(r Run) bool { return r.Failure != "" }), err
}

// Cut gives the number of the last line of a file where it was cut short, and 0 where it was not.
func Cut(path string) (line int, err error) {
	_, line, err = readAll(path)
	return line, err
}

// Failures reads the runs of a file that failed and have not been scored since, the last failure of each, in order.
func Failures(path string) ([]Run, error) {
	all, _, err := readAll(path)
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

// readAll reads every run, and says which line was cut short; 0: none.
func readAll(path string) (runs []Run, cut int, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		last := errors.Is(err, io.EOF)
		switch {
		case last && len(line) == 0:
			return runs, 0, nil
		case last && !whole(line):
			return runs, n, nil
		case err != nil && !last:
			return nil, 0, fmt.Errorf("%s: %w", path, err)
		}
		run, err := parse(line)
		if err != nil {
			return nil, 0, damaged(path, n, err)
		}
		if runs = append(runs, run); last {
			return runs, 0, nil
		}
	}
}

// whole says whether what follows the last end of a line is a line nevertheless: an editor may save one without its end. No
// part of an object of JSON is valid JSON, so this is none that a crash cut short.
func whole(line []byte) bool { return json.Valid(line) }

func damaged(path string, line int, err error) error {
	return fmt.Errorf("%s:%d: not a line of results: %w; mend the line, or remove it: the next chiplm sweep scores such a run anew, "+
		"and trains it first where it must", path, line, err)
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
	return run, run.check()
}

// Append adds a run to a file, which it makes when there is none. The line is on the disk when it returns. Appends wait
// for one another, those of other processes too. A run that [Read] would refuse is not written.
func Append(path string, run Run) (err error) {
	if err := run.check(); err != nil {
		return fmt.Errorf("%s: the run of %s (seed %d) is not written: %w", path, run.Arm, run.Seed, err)
	}
	line, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	line = append(line, '\n')
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := lock(f); err != nil {
		return fmt.Errorf("%s: lock: %w", path, err)
	}
	end, rest, err := lastEnd(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if whole(rest) {
		if _, err := parse(rest); err != nil {
			return fmt.Errorf("%s: the last line is not a line of results: %w; mend or remove it, and run the same command again", path, err)
		}
		end, line = end+int64(len(rest)), append([]byte{'\n'}, line...)
	} else if len(rest) > 0 { // what is longer than the new line would stay behind it
		if err := f.Truncate(end); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if _, err := f.WriteAt(line, end); err != nil {
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

// lastEnd says where the last whole line ends, and gives what follows it.
func lastEnd(f *os.File) (end int64, rest []byte, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	end = info.Size()
	block := make([]byte, 1<<16)
	for end > 0 {
		from := max(0, end-int64(len(block)))
		part := block[:end-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, nil, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			end = from + int64(i) + 1
			break
		}
		end = from
	}
	rest = make([]byte, info.Size()-end)
	_, err = f.ReadAt(rest, end)
	if errors.Is(err, io.EOF) {
		err = nil // there is nothing
	}
	return end, rest, err
}
