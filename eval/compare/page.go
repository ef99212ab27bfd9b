package compare

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
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
