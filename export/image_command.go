package export

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// ImageAt is the image that a user names: a file, or the one in a folder that export wrote. Any other path is returned as it
// is.
func ImageAt(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		in := filepath.Join(path, ImageFile)
		if _, err := os.Stat(in); err == nil {
			return in
		}
	}
	return path
}

// ImageCommand is `chiplm image`: it looks into image files.
func ImageCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "image",
		Short: "Look into an image: info, check, dump",
		Long: `Look into an image, the file that carries a model to a chip.

An image is model.clm of an export folder; the folder will do. docs/image.md describes the format.`,
		Example: `  chiplm image info exports/combo-esp32s3/model.clm
  chiplm image check exports/combo-esp32s3/model.clm
  chiplm image dump exports/combo-esp32s3/model.clm layers.0.qkv --format csv`,
	}
	c.AddCommand(infoCommand(), checkCommand(), dumpCommand())
	return c
}
