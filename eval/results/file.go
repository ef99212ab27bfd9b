package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/chiplm/chiplm/data/regular"
)

// Read reads all runs of a file, in order. A last line without its end, left by a program that was killed, is skipped.
// It fails on a line that is no run, and names it.
func Read(path string) ([]Run, error) {
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
		var run Run
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&run); err != nil {
			return nil, fmt.Errorf("%s:%d: not a line of results: %w", path, n, err)
		}
		runs = append(runs, run)
	}
}

// Append adds a run to a file, which it makes when there is none. The line is on the disk when it returns.
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
	end, err := wholeLines(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err := f.WriteAt(append(line, '\n'), end); err != nil {
		return errors.Join(err, f.Truncate(end))
	}
	return f.Sync()
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
