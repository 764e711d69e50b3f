package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// heapCommand returns btcore heap.
func heapCommand() *cobra.Command {
	var in input
	c := &cobra.Command{
		Use:   "heap [flags] [CORE]",
		Short: "the heap as a recording, damaged blocks, leaks",
		RunE: func(c *cobra.Command, args []string) error {
			defer in.Close()
			if err := in.load(args); err != nil {
				return err
			}
			for _, w := range in.warnings() {
				fmt.Fprintf(c.ErrOrStderr(), "btcore: %s\n", w)
			}
			return nil
		},
	}
	in.addFlags(c)
	return c
}
