package export

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/export/image"
)

// sizeTable accounts for every byte of an image.
type sizeTable struct {
	Rows  []sizeRow `json:"rows"`
	Total sizeRow   `json:"total"`
}

// sizeRow splits bytes into codes of real columns, scales (and other useful content), padding, and header (tables that
// describe the rest).
type sizeRow struct {
	Name    string  `json:"name"`
	Payload int64   `json:"payload"`
	Scales  int64   `json:"scales"`
	Padding int64   `json:"padding"`
	Header  int64   `json:"header"`
	Bytes   int64   `json:"bytes"`
	Params  int64   `json:"parameters"`
	BitsPer float64 `json:"bits_per_weight,omitempty"`
}

// sizesOf lists the sections, then the tensors, of an image that was read.
func sizesOf(f *image.File) *sizeTable {
	t := &sizeTable{Total: sizeRow{Name: "total"}}
	add := func(r sizeRow) {
		r.Bytes = r.Payload + r.Scales + r.Padding + r.Header
		if r.Params > 0 {
			r.BitsPer = float64(r.Bytes) * 8 / float64(r.Params)
		}
		t.Rows = append(t.Rows, r)
		t.Total.Payload += r.Payload
		t.Total.Scales += r.Scales
		t.Total.Padding += r.Padding
		t.Total.Header += r.Header
		t.Total.Bytes += r.Bytes
		t.Total.Params += r.Params
	}
	tables := int64(image.HeaderBytes + len(f.Sections)*image.SectionBytes)
	add(sizeRow{Name: "header and section table", Header: tables, Padding: f.Sections[0].Offset - tables})
	for i, s := range f.Sections[:len(f.Sections)-1] {
		gap := f.Sections[i+1].Offset - s.Offset - s.Bytes
		switch s.Name {
		case "TENS": // its entries are counted with the tensors
			add(sizeRow{Name: s.Name, Padding: gap})
		case "MODL":
			add(sizeRow{Name: s.Name, Padding: gap, Header: s.Bytes})
		default:
			add(sizeRow{Name: s.Name, Padding: gap, Payload: s.Bytes})
		}
	}
	entry := f.Raw("TENS")
	header := int64(len(entry) / max(len(f.Tensors), 1))
	var in int64
	for i := range f.Tensors {
		x := &f.Tensors[i]
		r := sizeRow{Name: x.Name, Payload: x.PayloadBytes(), Scales: int64(len(x.Scales)), Header: header, Params: int64(x.Parameters())}
		r.Padding = int64(len(x.Codes)) - r.Payload + pad(len(x.Codes)) + pad(len(x.Scales))
		in += r.Payload + r.Scales + r.Padding
		add(r)
	}
	data := f.Sections[len(f.Sections)-1]
	add(sizeRow{Name: "end of file", Padding: f.Bytes - data.Offset - in})
	if t.Total.Params > 0 {
		t.Total.BitsPer = float64(t.Total.Bytes) * 8 / float64(t.Total.Params)
	}
	return t
}

// pad is what brings n to the next multiple of the alignment.
func pad(n int) int64 { return int64((image.Align - n%image.Align) % image.Align) }

func (t *sizeTable) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprint(&b, "Bytes of the image\n\n")
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "payload\tscales\tpadding\theader\tbytes\tbits per weight\t  part")
	for _, r := range append(t.Rows[:len(t.Rows):len(t.Rows)], t.Total) {
		per := ""
		if r.BitsPer > 0 {
			per = fmt.Sprintf("%.2f", r.BitsPer)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t  %s\n", digits.Comma(r.Payload), digits.Comma(r.Scales), digits.Comma(r.Padding),
			digits.Comma(r.Header), digits.Comma(r.Bytes), per, r.Name)
	}
	tw.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}
