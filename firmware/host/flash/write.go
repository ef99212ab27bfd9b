package flash

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/data/scratch"
	"github.com/chiplm/chiplm/export/parts"
)

// Board says how a board is reached.
type Board struct {
	Port string // "": esptool looks for it
	Baud int    // means something for bridges only
}

// commands are the lines that write a plan and compare it.
func (p *Plan) commands(t *Tool, b Board) (write, verify []string) {
	rest := append(t.keep(), p.places()...)
	write = t.line(p.Chip, b.Port, b.Baud, "no-reset", "write-flash", rest...)
	return write, t.line(p.Chip, b.Port, b.Baud, "hard-reset", "verify-flash", rest...)
}

// tableCopy is the name of a file with the partition table of a board.
const tableCopy = "table.bin"

// read is the line that reads the partition table of a board into a file.
func (p *Plan) read(t *Tool, b Board, path string) []string {
	return t.line(p.Chip, b.Port, b.Baud, "no-reset", "read-flash", fmt.Sprintf("%#x", parts.TableOffset), fmt.Sprintf("%#x", parts.TableBytes), path)
}

// Write writes a plan to a board and compares what the chip holds, by hash. A model alone goes where the board's own
// partition table has it. What esptool says goes to w. Errors wrap [ErrTool], [ErrFit], [parts.ErrTable], or are that of
// ctx.
func (p *Plan) Write(ctx context.Context, t *Tool, b Board, w io.Writer) error {
	if p.ModelOnly {
		if err := p.ask(ctx, t, b, w); err != nil {
			return err
		}
	}
	write, verify := p.commands(t, b)
	if err := runTool(ctx, write, w); ctx.Err() != nil {
		return fmt.Errorf("writing was stopped, and the chip may hold a part: flash again before you use it: %w", ctx.Err())
	} else if err != nil {
		return fmt.Errorf("writing: %w; %s", err, bootLoader)
	}
	if err := runTool(ctx, verify, w); ctx.Err() != nil {
		return fmt.Errorf("all was written, but the comparison was stopped: flash again to be sure: %w", ctx.Err())
	} else if err != nil {
		return fmt.Errorf("the chip does not hold what was written, so do not use it: %w", err)
	}
	return nil
}

const bootLoader = "a board that is not found enters its boot loader while BOOT is held and RESET pressed"

// ask reads the partition table of a board and takes the model's place from it.
func (p *Plan) ask(ctx context.Context, t *Tool, b Board, w io.Writer) error {
	dir, done, err := scratch.Folder("flash")
	if err != nil {
		return err
	}
	defer done()
	path := filepath.Join(dir, tableCopy)
	if err := runTool(ctx, p.read(t, b, path), w); ctx.Err() != nil {
		return fmt.Errorf("reading the board's partition table was stopped, and nothing was written: %w", ctx.Err())
	} else if err != nil {
		return fmt.Errorf("reading the board's partition table: %w; %s", err, bootLoader)
	}
	binary, err := regular.ReadFile(path, parts.TableBytes)
	if err != nil {
		return fmt.Errorf("%w read no partition table: %w", ErrTool, err)
	}
	table, err := parts.ParseBinary(binary)
	if err != nil {
		return fmt.Errorf("on the board: %w: flash the firmware too, with --firmware", err)
	}
	at := table.Find(parts.ModelPartition)
	if at == nil {
		return fmt.Errorf("%w: the one on the board has no partition %q (%s), so other firmware is on it: flash chiplm's too, with --firmware",
			parts.ErrTable, parts.ModelPartition, table.Names())
	}
	if planned := p.Model().Offset; planned != at.Offset {
		p.Notes = append(p.Notes, fmt.Sprintf("the board's own partition table has the model at %#x (%s bytes), not at %#x: it counts",
			at.Offset, digits.Comma(int64(at.Size)), planned))
	}
	return p.put(at)
}
