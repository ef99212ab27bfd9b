package eval

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/chiplm/chiplm/data/digits"
)

// write prints the report as a table of at most 100 columns.
func (r *Report) write(w io.Writer) error {
	fmt.Fprintf(w, "stories  %s: the first %s, %s bytes, sha256 %.12s\n", r.Stories.Path, digits.Comma(r.Stories.Count), digits.Comma(r.Stories.Bytes), r.Stories.SHA256)
	for _, m := range r.Models {
		fmt.Fprintf(w, "model    %s: %s\n", m.Model, m.Path)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "model\tparameters\timage\tread/token\ttext B/token\tbits/byte\twith end\tnats/token\t")
	for _, m := range r.Models {
		fmt.Fprintf(t, "%.20s\t%s\t%.2f MB\t%.1f kB\t%.3f\t%.4f\t%.4f\t%.4f\t\n", m.Model, digits.Comma(m.Parameters),
			float64(m.ImageBytes)/1e6, float64(m.BytesReadPerToken)/1e3, m.TextBytesPerToken,
			m.BitsPerByte, m.BitsPerByteWithEnd, m.NatsPerToken)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := r.writeReference(w); err != nil {
		return err
	}
	for _, m := range r.Models {
		if m.Count == nil {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s, one token at a time\n", m.Model); err != nil {
			return err
		}
		if err := m.Count.write(w); err != nil {
			return err
		}
	}
	return nil
}

// writeReference prints what the training graph says, if it was asked.
func (r *Report) writeReference(w io.Writer) error {
	if len(r.Models) == 0 || r.Models[0].Reference == nil {
		return nil
	}
	fmt.Fprintln(w, "\nThe training graph on the same stories:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "model\tfloat bits/byte\tfake-quant bits/byte\tengine bits/byte\tengine - fake-quant, nats/token\t")
	for _, m := range r.Models {
		fmt.Fprintf(t, "%.20s\t%.4f\t%.4f\t%.4f\t%+.6f\t\n", m.Model, m.Reference.Float.BitsPerByte,
			m.Reference.FakeQuant.BitsPerByte, m.BitsPerByte, math.Round(m.Reference.NatsDifference*1e6)/1e6+0) // + 0: no minus before a zero
	}
	return t.Flush()
}
