package compare

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"strings"

	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/data/usage"
)

// Every page has these two near its start. What has not is not replaced.
const (
	doctype   = "<!DOCTYPE html>"
	generator = `<meta name="generator" content="chiplm compare">`
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"sign": func(text string) string { return strings.ReplaceAll(text, " +- ", " ± ") },
	"word": func(t table, column int) bool { return column == 0 || t.Words && column == len(t.Headers)-1 },
}).Parse(pageText))

// HTML writes the report as one page that needs nothing else: tables, loss curves, and the front.
func (r *Report) HTML(w io.Writer) error {
	var drawings []*drawing
	for _, draw := range []func() (*drawing, error){r.scatter, r.curves} {
		d, err := draw()
		if err != nil {
			return err
		}
		if d != nil {
			drawings = append(drawings, d)
		}
	}
	title := "Comparison"
	if r.Baseline != "" {
		title = fmt.Sprintf("Comparison with %s", r.Baseline)
	}
	return page.Execute(w, map[string]any{"Title": title, "Head": r.head(), "Tables": r.tables(), "Drawings": drawings, "Legend": r.legend(), "Notes": r.Notes})
}

// mayReplace refuses to write a page over one of the results that it is made of, however that is called, and over any file
// that is no page of this program: a slip in a name must not cost the results of hours.
func mayReplace(path string, inputs []string) error {
	there, err := os.Stat(path)
	if err != nil || !there.Mode().IsRegular() {
		return nil // nothing to lose; writing says what is wrong with it
	}
	if err := regular.KeepInput(path, inputs...); err != nil {
		return usage.Errorf("--html %w", err)
	}
	if there.Size() == 0 {
		return nil
	}
	f, err := regular.Open(path)
	if err != nil {
		return fmt.Errorf("--html %s: what is there cannot be read: %w; give the page another name", path, regular.Cause(err))
	}
	defer f.Close()
	start, err := io.ReadAll(io.LimitReader(f, 1024))
	if err != nil {
		return fmt.Errorf("--html %s: what is there cannot be read: %w; give the page another name", path, regular.Cause(err))
	}
	if !strings.HasPrefix(string(start), doctype) || !strings.Contains(string(start), generator) {
		return fmt.Errorf("--html %s: there is something else than a page of chiplm compare, which would be lost: give the page another name, "+
			"or remove that file", path)
	}
	return nil
}
