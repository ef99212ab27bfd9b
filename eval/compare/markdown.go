package compare

import (
	"io"
	"strings"
)

// Markdown prints the report for a page.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	paragraph := func(lines []string) { b.WriteString(escape(strings.Join(lines, " ")) + "\n") }
	paragraph(r.head())
	for _, t := range r.tables() {
		b.WriteString("\n")
		if t.Words {
			b.WriteString(escape(t.Title) + ":\n\n")
		}
		for i, h := range t.Headers {
			if i == 0 {
				b.WriteString("|")
			}
			b.WriteString(" " + h + " |")
		}
		b.WriteString("\n")
		for i := range t.Headers {
			switch {
			case i == 0:
				b.WriteString("|---|")
			case i == len(t.Headers)-1 && t.Words:
				b.WriteString("---|")
			default:
				b.WriteString("---:|")
			}
		}
		for _, row := range t.Rows {
			b.WriteString("\n|")
			for _, cell := range row {
				b.WriteString(" " + escape(cell) + " |")
			}
		}
		b.WriteString("\n")
		if t.Note != "" {
			b.WriteString("\n")
			paragraph([]string{t.Note})
		}
	}
	b.WriteString("\n")
	paragraph(r.legend())
	if len(r.Notes) > 0 {
		b.WriteString("\n")
		for _, n := range r.Notes {
			b.WriteString("- " + escape(n) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// escape keeps what Markdown would read as its own.
func escape(text string) string { return markdown.Replace(text) }

var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;", "&", "&amp;", "[", `\[`, "#", `\#`, "~", `\~`)
