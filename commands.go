package main

import "github.com/spf13/cobra"

// commands are the subcommands, in the order of the road from text to chip.
func commands() []*cobra.Command {
	return nil
}
