package compare

import (
	"io"
	"strings"

	"github.com/rivo/uniseg"
)

// columns is the width of a terminal that tables keep to.
const columns = 100

// Write prints the report for a terminal, at most 100 columns wide.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	paragraph := func(lines []string, first, then string) {
		for _, line := range lines {
			for i, part := range wrap(line, columns-len(then)) {
				if i > 0 {
					first = then
				}
				b.WriteString(first + part + "\n")
			}
		}
	}
	paragraph(r.head(), "", "")
	for _, t := range r.tables() {
		b.WriteString("\n")
		if t.Words {
			b.WriteString(short(t.Title, columns) + "\n")
		}
		t.write(&b)
		if t.Note != "" {
			paragraph([]string{t.Note}, "", "")
		}
	}
	b.WriteString("\n")
	paragraph(r.legend(), "", "")
	if len(r.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range r.Notes {
		paragraph([]string{n}, "note: ", "      ")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// write prints a table, aligned.
func (t *table) write(b *strings.Builder) {
	rows := append([][]string{t.Headers}, t.Rows...)
	last := len(t.Headers) - 1
	widths := make([]int, len(t.Headers))
	others := 0
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], uniseg.StringWidth(row[i]))
		}
		if i > 0 {
			others += 2 + widths[i]
		}
	}
	widths[0] = min(widths[0], nameWidth)
	if !t.Words { // names give way to wide figures
		widths[0] = min(widths[0], max(columns-others, 3))
	}
	left := columns // for the words of the last column
	for _, w := range widths[:last] {
		left -= w + 2
	}
	for _, row := range rows {
		name := short(row[0], widths[0])
		line := name + strings.Repeat(" ", widths[0]-uniseg.StringWidth(name))
		for i, cell := range row[1:last] {
			line += "  " + strings.Repeat(" ", widths[i+1]-uniseg.StringWidth(cell)) + cell
		}
		if !t.Words {
			b.WriteString(line + "  " + strings.Repeat(" ", widths[last]-uniseg.StringWidth(row[last])) + row[last] + "\n")
			continue
		}
		for _, part := range wrap(row[last], left) {
			b.WriteString(line + "  " + part + "\n")
			line = strings.Repeat(" ", columns-left-2)
		}
	}
}
