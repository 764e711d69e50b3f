package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/spf13/cobra"
)

func newStacks() *cobra.Command {
	var word int
	var seed uint64
	c := &cobra.Command{
		Use:   "stacks --word 32|64 [--seed N]",
		Short: "print the stacks from which vectors are recorded",
		Long: `stacks prints the stacks that ref-c/vectors are recorded from, one per line: ID,
size and addresses in hex (- for none), separated by tabs.`,
		Example: "btconform stacks --word 64 | ref-c/btref vectors > x86_64.btv",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if word != 32 && word != 64 {
				return cli.BadArgsf("--word %d, expected 32 or 64", word)
			}
			w := bufio.NewWriter(c.OutOrStdout())
			for _, n := range gen.VectorStacks(word, seed) {
				writeStack(w, n.ID, &n.Stack)
			}
			return w.Flush()
		},
	}
	c.Flags().IntVar(&word, "word", 64, "`BITS` of an address, 32 or 64")
	c.Flags().Uint64Var(&seed, "seed", 1, "make the stacks from seed `N`; their IDs stay the same")
	return c
}

// writeStack writes a line of the form that btref reads.
func writeStack(w io.Writer, id string, s *codec.Stack) {
	fmt.Fprintf(w, "%s\t%x\t", id, s.Size)
	for i, pc := range s.PCs {
		if i > 0 {
			io.WriteString(w, " ")
		}
		fmt.Fprintf(w, "%x", pc)
	}
	if len(s.PCs) == 0 {
		io.WriteString(w, "-")
	}
	io.WriteString(w, "\n")
}
