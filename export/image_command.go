package export

import (
	"github.com/spf13/cobra"
)

// ImageCommand is `chiplm image`: it looks into image files.
func ImageCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "image",
		Short: "Look into an image: info, check, dump",
		Long: `Look into an image, the file that carries a model to a chip.

An image is model.clm of an export folder. docs/image.md describes the format.`,
		Example: `  chiplm image info exports/combo-esp32s3/model.clm
  chiplm image check exports/combo-esp32s3/model.clm
  chiplm image dump exports/combo-esp32s3/model.clm layers.0.qkv --format csv`,
	}
	c.AddCommand(infoCommand(), checkCommand(), dumpCommand())
	return c
}
