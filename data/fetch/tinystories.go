package fetch

import (
	"fmt"
	"net/url"
	"strings"
)

// Hub is where the official files are.
const Hub = "https://huggingface.co"

// TinyStoriesRevision is the version of the roneneldan/TinyStories data set whose sizes and hashes are known here.
const TinyStoriesRevision = "f54c09fd23315a6f9c86f9dc80f725de7d8f9c64"

// File is one file of a data set.
type File struct {
	Name   string
	Bytes  int64
	SHA256 string
}

// The official text files of TinyStories (Eldan and Li, 2023). Sizes and hashes are those under which the data set's
// hub stores the files.
var tinyStories = map[[2]string]File{
	{"v2", "train"}: {"TinyStoriesV2-GPT4-train.txt", 2227753162,
		"6418d412de72888f52b5142c761ac21a582f7d1166f0bfbdb5f03ccfdec90443"},
	{"v2", "valid"}: {"TinyStoriesV2-GPT4-valid.txt", 22502601,
		"6874bae9a4c1a4e7edcf0e53b86c17817e9cf881fc75ff2368da457b80c0585d"},
	{"v1", "train"}: {"TinyStories-train.txt", 1924281556,
		"c5cf5e22ff13614e830afbe61a99fbcbe8bcb7dd72252b989fa1117a368d401f"},
	{"v1", "valid"}: {"TinyStories-valid.txt", 19447282,
		"94e431816c4cce81ff71e4408ff8d3bda9a42e8d2663986697c3954288cb38b4"},
}

// TinyStories gives an official file by variant ("v2": written by GPT-4 alone; "v1": the original mixture) and split
// ("train" or "valid").
func TinyStories(variant, split string) (File, error) {
	f, ok := tinyStories[[2]string{variant, split}]
	if !ok {
		return File{}, fmt.Errorf("TinyStories has no variant %q with a split %q: the variants are v2 and v1, the splits "+
			"train and valid", variant, split)
	}
	return f, nil
}

// TinyStoriesURL is the address of a file of TinyStories on the hub or a mirror of it.
func TinyStoriesURL(base, revision, name string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("the base URL %q is no http or https address, such as %s", base, Hub)
	}
	return strings.TrimRight(base, "/") + "/datasets/roneneldan/TinyStories/resolve/" + url.PathEscape(revision) + "/" +
		url.PathEscape(name), nil
}
