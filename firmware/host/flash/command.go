package flash

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export/parts"
	"github.com/chiplm/chiplm/firmware/host/port"
)

// Command is `chiplm flash`.
func Command() *cobra.Command {
	var (
		opt            Options
		board          Board
		dryRun, asJSON bool
	)
	c := &cobra.Command{
		Use:   "flash EXPORT",
		Short: "Put firmware and a model on a board, and compare what the chip holds",
		Long: `Put firmware and a model on a board.

EXPORT is a folder that chiplm export wrote, or an image (model.clm). The firmware is what the
export carries, or the build folder that --firmware names; without either, or with --model-only,
the model is written alone, to the place that the board's own partition table gives it.

Before anything is written, the export's hashes, the image, the chip that each file was made for
and the room in the partition table are checked. esptool then writes, and compares the hash of
what the chip holds with that of each file. Old and new versions of esptool are spoken to.

A build folder holds what ESP-IDF's idf.py build leaves there: flasher_args.json, and the files
that it names. The folder above it will do too, and so will one with bootloader.bin,
partition-table.bin and firmware.bin. Its table must have a partition named model. With
--model-only, a folder with a partitions.csv is enough.`,
		Example: `  chiplm flash exports/combo-esp32s3 --firmware firmware/build
  chiplm flash exports/combo-esp32s3 --model-only --port /dev/ttyACM0
  chiplm flash exports/combo-esp32s3 --firmware firmware/build --dry-run`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return usage.Errorf("EXPORT is empty: name an export folder or an image")
			}
			if board.Baud < 1 {
				return usage.Errorf("--baud %d is no speed", board.Baud)
			}
			if board.Port == "" {
				return usage.Errorf("--port is empty: name a port, or leave it out for the one board there is")
			}
			ctx, errs := cmd.Context(), cmd.ErrOrStderr()
			opt.Path = args[0]
			plan, err := NewPlan(opt)
			if err != nil {
				return err
			}
			tool, err := FindTool(ctx)
			if dryRun && errors.Is(err, ErrTool) {
				plan.Notes = append(plan.Notes, err.Error())
				tool, err = newest(), nil
			}
			if err != nil {
				return err
			}
			if board.Port == "auto" {
				found, err := port.Find()
				if err != nil && !dryRun {
					return err
				}
				board.Port = found // none: esptool would look for one
			}
			if dryRun && plan.ModelOnly {
				plan.Notes = append(plan.Notes, fmt.Sprintf("%#x is an assumption, that of %s: a model alone goes where the board's own partition table has it, which the first command reads",
					plan.Model().Offset, plan.assumed))
			}
			r := &report{Plan: plan, Tool: tool.Version, DryRun: dryRun}
			if plan.ModelOnly {
				r.Read = plan.read(tool, board, tableCopy)
				r.Assumed = dryRun
			}
			if !dryRun {
				err = plan.Write(ctx, tool, board, errs)
			}
			for _, n := range plan.Notes {
				fmt.Fprintf(errs, "note: %s\n", n)
			}
			if err != nil {
				return err
			}
			r.Verified = !dryRun
			r.Write, r.Verify = plan.commands(tool, board)
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), r)
			}
			return r.print(cmd.OutOrStdout())
		},
	}
	c.Flags().StringVar(&board.Port, "port", "auto", "serial port; auto: that of the one board that is there")
	c.Flags().IntVar(&board.Baud, "baud", 460800, "speed for boards behind a bridge; over the chip's own USB it means nothing")
	c.Flags().StringVar(&opt.Firmware, "firmware", "", "build folder of the firmware")
	c.Flags().StringVar(&opt.Target, "target", "", "the export's target, where it is a file of your own")
	c.Flags().BoolVar(&opt.ModelOnly, "model-only", false, "leave the firmware on the board as it is")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "print the commands, and run none of them")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// report is what the command prints.
type report struct {
	*Plan
	Tool     string   `json:"esptool,omitempty"`
	Read     []string `json:"read,omitempty"` // of a model alone: reads the board's partition table
	Assumed  bool     `json:"offset_assumed"` // the model's offset was not read from a board
	Write    []string `json:"write"`
	Verify   []string `json:"verify"`
	DryRun   bool     `json:"dry_run"`
	Verified bool     `json:"verified"`
}

func (r *report) print(w io.Writer) error {
	if r.DryRun && r.Read != nil {
		_, err := fmt.Fprintf(w, "# the board's partition table; the model goes where it has the partition %s, not surely to %#x:\n%s\n", parts.ModelPartition, r.Model().Offset, quote(r.Read))
		if err != nil {
			return err
		}
	}
	if r.DryRun {
		_, err := fmt.Fprintf(w, "%s\n%s\n", quote(r.Write), quote(r.Verify))
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "part\toffset\tbytes\tSHA-256")
	for _, p := range r.Parts {
		fmt.Fprintf(t, "%s\t%#x\t%s\t%s\n", p.Name, p.Offset, digits.Comma(p.Bytes), p.SHA256)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nverified: the chip holds what these files hold. Talk to it: chiplm chat --port auto")
	return err
}
