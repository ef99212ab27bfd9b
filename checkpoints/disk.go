package checkpoints

import (
	"io"
	"os"
)

// disk is what a save does to the file system, so that tests can make any of it fail.
type disk interface {
	MkdirAll(path string) error
	Mkdir(path string) error
	Create(path string) (file, error) // fails if the file exists
	Rename(from, to string) error
	SyncDir(path string) error
	RemoveAll(path string) error
}

type file interface {
	io.Writer
	Sync() error
	Close() error
}

// realDisk is the operating system's file system.
type realDisk struct{}

func (realDisk) MkdirAll(path string) error   { return os.MkdirAll(path, 0o755) }
func (realDisk) Mkdir(path string) error      { return os.Mkdir(path, 0o755) }
func (realDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (realDisk) RemoveAll(path string) error  { return os.RemoveAll(path) }

func (realDisk) Create(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

func (realDisk) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
