package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/lwsbt/lwsbt/conformance/mutant"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/spf13/cobra"
)

func newMutants() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "mutants [--all] [VECTORS...]",
		Short: "mutation tests: run the vectors on codecs with a bug",
		Long: `mutants runs the vectors on mutants, which are copies of the codec, each with a
bug, and prints for each the vectors that failed. A mutant that passes all of
them survives: a vector is missing. mutants exits with 1 if any survives.`,
		Example: "btconform mutants | grep -A1 spill",
		RunE:    func(c *cobra.Command, args []string) error { return mutants(c, args, all) },
	}
	c.Flags().BoolVar(&all, "all", false, "print all vectors that failed, not only what fits a line")
	return c
}

func mutants(c *cobra.Command, args []string, all bool) error {
	set, err := loadVectors(c, args)
	if err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(c.Context())
	defer stop()
	killed, err := mutant.Kill(ctx, set)
	if err != nil {
		return failed(err)
	}
	w := bufio.NewWriter(c.OutOrStdout())
	decoders, survivors := 0, 0
	for _, k := range killed {
		if !k.Encoder {
			decoders++
		}
		between := " "
		if len(k.Name)+len(k.Bug) > 78 {
			between = "\n    "
		}
		fmt.Fprintf(w, "%s:%s%s\n", k.Name, between, k.Bug)
		if len(k.By) == 0 {
			survivors++
			fmt.Fprintln(w, "    SURVIVES: it passes all vectors")
			continue
		}
		fmt.Fprintf(w, "    %s\n", listed(fmt.Sprintf("killed by %d:", len(k.By)), k.By, all))
	}
	fmt.Fprintf(w, "%d decoders and %d encoders, %d of them survive %d vectors\n",
		decoders, len(killed)-decoders, survivors, len(set.Vectors))
	if err := w.Flush(); err != nil {
		return failed(err)
	}
	if survivors > 0 {
		return cli.Exit(cli.Short)
	}
	return nil
}

// listed returns head and as many IDs as fit a line of 76 characters, or all IDs.
func listed(head string, ids []string, all bool) string {
	for i, id := range ids {
		if !all && i > 0 && len(head)+1+len(id)+len(", …") > 76 {
			return head + ", …"
		}
		if i > 0 {
			head += ","
		}
		head += " " + id
	}
	return strings.TrimSpace(head)
}
