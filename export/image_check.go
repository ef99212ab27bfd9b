package export

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/export/image"
)

// ErrCheck is returned when a check of an image failed; what failed has been printed.
var ErrCheck = errors.New("the image is not right")

// checkReport is what `chiplm image check` prints.
type checkReport struct {
	File     string       `json:"file"`
	Bytes    int64        `json:"bytes"`
	Checks   []checkEntry `json:"checks"`
	Advice   string       `json:"advice,omitempty"` // what to do about the first that failed
	Verified bool         `json:"verified"`
}

type checkEntry struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

func checkCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check IMAGE",
		Short: "Run every check on an image, and its golden in the C engine",
		Long: `Run every check on an image: its form, all checksums, codes, scales, tables, tokenizer and
padding, then its golden in the C engine. The last line says verified when all passed. The exit
status is 1 otherwise.`,
		Example: "  chiplm image check exports/combo-esp32s3/model.clm",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := checkFile(ImageAt(args[0]))
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				err = jsonout.Write(out, r)
			} else {
				for _, e := range r.Checks {
					if e.OK {
						_, err = fmt.Fprintf(out, "ok      %s\n", e.Name)
					} else {
						_, err = fmt.Fprintf(out, "FAILED  %s: %s\n", e.Name, e.Error)
					}
				}
				if r.Verified {
					_, err = fmt.Fprintf(out, "verified: %s, %s bytes\n", r.File, digits.Comma(r.Bytes))
				}
			}
			if err != nil {
				return err
			}
			if !r.Verified {
				return fmt.Errorf("%s: %w: %s", args[0], ErrCheck, r.Advice)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// checkFile runs all checks; the engine is asked only about an image that the reader accepts whole.
func checkFile(path string) (*checkReport, error) {
	im, results, size, err := image.CheckFile(path)
	if err != nil {
		return nil, err
	}
	r := &checkReport{File: path, Bytes: size, Verified: true}
	add := func(name string, err error) {
		e := checkEntry{Name: name, OK: err == nil}
		if err != nil {
			e.Error = err.Error()
			if r.Verified {
				r.Advice = image.Advice(err)
			}
			r.Verified = false
		}
		r.Checks = append(r.Checks, e)
	}
	for _, c := range results {
		add(c.Name, c.Err)
	}
	if r.Verified {
		if _, err := bpe.FromImage(im.Tokenizer); !errors.Is(err, bpe.ErrNone) {
			add("tokenizer as it is used", err)
		}
		add("bounds of the head", checkClusters(im))
		add("golden in the C engine", verify(path))
	}
	return r, nil
}
