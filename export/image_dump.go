package export

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export/image"
)

// What `chiplm image dump` can take from a tensor, and how it can write it.
var (
	dumpParts   = []string{"values", "codes", "scales"}
	dumpFormats = []string{"text", "csv", "json", "npy", "raw", "hex"}
)

func dumpCommand() *cobra.Command {
	var part, format, rows, out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "dump IMAGE NAME",
		Short: "Write a tensor or a section of an image",
		Long: `Write one tensor of an image, or the bytes of a section (MODL CONF TENS ROPE TOKN GOLD DATA).

A tensor is written as values (dequantised), codes, or scales. Formats: text (a row a line),
csv, json, npy (NumPy: float32 values and scales, int8 codes), raw (the stored bytes), hex (the
stored bytes, readable). A section is written raw, as hex, or as json: CONF as text, others in
base64.`,
		Example: `  chiplm image dump model.clm layers.0.qkv --rows 0:4
  chiplm image dump model.clm ple_table --part codes --format npy --out ple.npy
  chiplm image dump model.clm CONF`,
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return nil, cobra.ShellCompDirectiveDefault // a file
			case 1:
				return namesIn(ImageAt(args[0])), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := image.Open(ImageAt(args[0]))
			if err != nil {
				return err
			}
			if asJSON {
				if cmd.Flags().Changed("format") && format != "json" {
					return fmt.Errorf("--json and --format %s: give one of them", format)
				}
				format = "json"
			}
			if isSection(args[1]) && (rows != "" || cmd.Flags().Changed("part")) {
				return fmt.Errorf("%s is a section and has no rows or parts: leave out --rows and --part", args[1])
			}
			d := dump{part: part, format: format, rows: rows, given: cmd.Flags().Changed("format") || asJSON}
			if out == "" {
				if file, ok := cmd.OutOrStdout().(*os.File); ok && d.binary(args[1]) && term.IsTerminal(int(file.Fd())) {
					return fmt.Errorf("%s would put bytes on the terminal: give --out FILE or --format hex", args[1])
				}
				return d.write(cmd.OutOrStdout(), f, args[1])
			}
			if err := regular.KeepInput(out, args[0]); err != nil {
				return usage.Errorf("--out %w", err)
			}
			return intoFile(out, func(w io.Writer) error { return d.write(w, f, args[1]) })
		},
	}
	c.Flags().StringVar(&part, "part", "values", "what to take from a tensor: "+strings.Join(dumpParts, ", "))
	c.Flags().StringVar(&format, "format", "text", "how to write it: "+strings.Join(dumpFormats, ", "))
	c.Flags().StringVar(&rows, "rows", "", "rows FROM:TO, TO left out of them (default all)")
	c.Flags().StringVar(&out, "out", "", "write to this file instead of standard output")
	c.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	complete(c, "part", cobra.ShellCompDirectiveNoFileComp, dumpParts)
	complete(c, "format", cobra.ShellCompDirectiveNoFileComp, dumpFormats)
	return c
}

// namesIn lists what can be dumped from an image: nothing from one that cannot be read.
func namesIn(path string) []string {
	f, err := image.Open(path)
	if err != nil {
		return nil
	}
	names := image.SectionNames()
	for i := range f.Tensors {
		names = append(names, f.Tensors[i].Name)
	}
	return names
}

// dump is what is asked for.
type dump struct {
	part, format, rows string
	given              bool // the format was asked for, not taken by default
}

func isSection(name string) bool {
	for _, s := range image.SectionNames() {
		if s == name {
			return true
		}
	}
	return false
}

// binary reports whether the output is no text.
func (d dump) binary(name string) bool {
	if isSection(name) {
		return name != "CONF" && d.format != "hex" && d.format != "json"
	}
	return d.format == "npy" || d.format == "raw"
}

func (d dump) write(w io.Writer, f *image.File, name string) error {
	if isSection(name) {
		switch {
		case d.format == "hex":
			_, err := io.WriteString(w, hex.Dump(f.Raw(name)))
			return err
		case d.format == "json":
			return sectionJSON(w, name, f.Raw(name))
		case d.given && d.format != "raw":
			return fmt.Errorf("a section is written raw, hex or json, not as %s", d.format)
		}
		_, err := w.Write(f.Raw(name))
		return err
	}
	t := f.Tensor(name)
	if t == nil {
		return fmt.Errorf("no tensor or section %q in the image; chiplm image info lists them", name)
	}
	m, err := d.take(t)
	if err != nil {
		return err
	}
	switch d.format {
	case "text":
		return m.text(w, " ")
	case "csv":
		return m.text(w, ",")
	case "json":
		return m.json(w, name, d.part)
	case "npy":
		return m.npy(w)
	case "raw":
		_, err := w.Write(m.stored)
		return err
	case "hex":
		_, err := io.WriteString(w, hex.Dump(m.stored))
		return err
	}
	return fmt.Errorf("unknown format %q: %s", d.format, strings.Join(dumpFormats, ", "))
}

// sectionJSON writes a section of text as a string, any other in base64.
func sectionJSON(w io.Writer, name string, b []byte) error {
	encoding, data := "base64", base64.StdEncoding.EncodeToString(b)
	if name == "CONF" && utf8.Valid(b) {
		encoding, data = "text", string(b)
	}
	return jsonout.Write(w, map[string]any{"name": name, "bytes": len(b), "encoding": encoding, "data": data})
}

// matrix is a part of a tensor: rows x cols numbers, and the bytes that the image stores for them.
type matrix struct {
	rows, cols int
	whole      bool // the numbers are int8 codes
	at         func(row, col int) float32
	stored     []byte
}

func (d dump) take(t *image.Tensor) (*matrix, error) {
	from, to, err := rowRange(d.rows, t.Rows)
	if err != nil {
		return nil, err
	}
	if bytes := d.format == "raw" || d.format == "hex"; bytes && t.Block > 0 && (from > 0 || to < t.Rows) {
		return nil, fmt.Errorf("%s is stored transposed, its rows do not lie together: leave --rows out, or choose another format than %s",
			t.Name, d.format)
	}
	stored := func(b []byte) []byte {
		if t.Block > 0 {
			return b
		}
		perRow := len(b) / t.Rows
		return b[from*perRow : to*perRow]
	}
	m := &matrix{rows: to - from, cols: t.Cols, stored: stored(t.Codes)}
	if t.Raw() && d.part != "values" {
		return nil, fmt.Errorf("%s holds bytes, no %s: use --part values", t.Name, d.part)
	}
	switch d.part {
	case "values":
		m.at = func(r, c int) float32 { return t.Value(from+r, c) }
		return m, nil
	case "codes":
		if t.Bits == 32 {
			return nil, fmt.Errorf("%s holds float32 values, no codes: use --part values", t.Name)
		}
		m.whole = true
		m.at = func(r, c int) float32 { return float32(t.Code(from+r, c)) }
		return m, nil
	case "scales":
		if t.Bits == 32 {
			return nil, fmt.Errorf("%s holds float32 values, no scales: use --part values", t.Name)
		}
		m.cols, m.stored = t.Groups(), stored(t.Scales)
		m.at = func(r, c int) float32 { return t.Scale(from+r, c) }
		return m, nil
	}
	return nil, fmt.Errorf("unknown part %q: %s", d.part, strings.Join(dumpParts, ", "))
}

func rowRange(s string, rows int) (from, to int, err error) {
	if s == "" {
		return 0, rows, nil
	}
	a, b, ok := strings.Cut(s, ":")
	from, to = 0, rows
	if a != "" {
		from, err = strconv.Atoi(a)
	}
	if err == nil && b != "" {
		to, err = strconv.Atoi(b)
	}
	if !ok || err != nil || from < 0 || to > rows || from >= to {
		return 0, 0, fmt.Errorf("--rows %q: must be FROM:TO with 0 <= FROM < TO <= %d", s, rows)
	}
	return from, to, nil
}

func (m *matrix) text(w io.Writer, sep string) error {
	b := bufio.NewWriter(w)
	for r := range m.rows {
		for c := range m.cols {
			if c > 0 {
				b.WriteString(sep)
			}
			b.WriteString(strconv.FormatFloat(float64(m.at(r, c)), 'g', -1, 32))
		}
		b.WriteByte('\n')
	}
	return b.Flush() // keeps the first error of all writes
}

func (m *matrix) json(w io.Writer, name, part string) error {
	rows := make([][]float32, m.rows)
	for r := range rows {
		rows[r] = make([]float32, m.cols)
		for c := range rows[r] {
			rows[r][c] = m.at(r, c)
		}
	}
	return jsonout.Write(w, map[string]any{"name": name, "part": part, "rows": m.rows, "columns": m.cols, "data": rows})
}

// npy writes NumPy's array format, version 1.0: a header padded to a multiple of 64 bytes, then the numbers.
func (m *matrix) npy(w io.Writer) error {
	kind := "<f4"
	if m.whole {
		kind = "|i1"
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }", kind, m.rows, m.cols)
	const fixed = 10
	pad := 63 - (fixed+len(head))%64
	head += strings.Repeat(" ", pad) + "\n"
	b := bufio.NewWriter(w)
	b.WriteString("\x93NUMPY\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(head))))
	b.WriteString(head)
	for r := range m.rows {
		for c := range m.cols {
			if m.whole {
				b.WriteByte(byte(int8(m.at(r, c))))
			} else {
				b.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(m.at(r, c))))
			}
		}
	}
	return b.Flush()
}

// intoFile writes a file whole or not at all: under a temporary name beside it, synced, renamed.
func intoFile(path string, write func(io.Writer) error) error {
	if err := regular.Write(path, write); err != nil {
		return fmt.Errorf("write %s: %w", path, regular.Cause(err))
	}
	return nil
}
