package web

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed dist
var embedded embed.FS

// ErrNotBuilt occurs when the program was built without its page.
var ErrNotBuilt = errors.New("this program was built without its page: build it with make build, in a checkout of chiplm; that installs what it needs (Node.js, clang, lld)")

const (
	indexFile = "index.html"
	notServed = "README.md" // stands for the page in a checkout where it is not built
)

// Dist is the page that the program carries.
func Dist() fs.FS {
	files, err := fs.Sub(embedded, "dist")
	if err != nil {
		panic(err) // "dist" is a valid path
	}
	return files
}

// pageFiles lists the files of a page.
func pageFiles(dist fs.FS) ([]file, error) {
	if _, err := fs.Stat(dist, indexFile); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotBuilt
	}
	var files []file
	err := fs.WalkDir(dist, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == notServed {
			return err
		}
		b, err := fs.ReadFile(dist, name)
		files = append(files, file{name, ready(b)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the page: %w", err)
	}
	return files, nil
}

// types are the media types of files by the ends of their names. The system's own table may lack some.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".json": "application/json",
	".map":  "application/json",
	".svg":  "image/svg+xml",
	".png":  "image/png",
	".ico":  "image/x-icon",
	".wasm": "application/wasm",
	".txt":  "text/plain; charset=utf-8",
	".md":   "text/plain; charset=utf-8",
	"":      "text/plain; charset=utf-8", // such as LICENSE
}

// typeOf is the media type of a file.
func typeOf(name string) string {
	if t, ok := types[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return "application/octet-stream"
}
