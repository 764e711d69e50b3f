package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/spf13/cobra"
)

func newList() *cobra.Command {
	var globs []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "list [--run GLOB] [--json] [VECTORS...]",
		Short: "list the vectors",
		Long: `list prints the ID, operations, clauses, and file and line of each vector,
separated by tabs. With --json it prints the vectors themselves, an element for
each operation: input, request of BTP/1, and expected output. The form is that
of conformance/btv/schema.json.`,
		Example: "btconform list --run 'delta/*' | cut -f1\nbtconform list --json > vectors.json",
		RunE: func(c *cobra.Command, args []string) error {
			set, err := loadVectors(c, args)
			if err != nil {
				return err
			}
			if set = set.Select(globs...); len(set.Vectors) == 0 {
				return cli.Usagef("no vector's ID matches --run %s", strings.Join(globs, " --run "))
			}
			w := bufio.NewWriter(c.OutOrStdout())
			if asJSON {
				if err := set.WriteJSON(w); err != nil {
					return failed(err)
				}
				return w.Flush()
			}
			for _, v := range set.Vectors {
				ops := make([]string, len(v.Ops))
				for i, op := range v.Ops {
					ops[i] = string(op)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.ID, strings.Join(ops, " "), strings.Join(v.Clauses, " "), v.Place())
			}
			return w.Flush()
		},
	}
	cli.ExitCodes(c, `0 listed, 2 usage, unreadable input or nothing to list, 3 the output cannot be
written.`)
	c.Flags().StringArrayVar(&globs, "run", nil, "only vectors whose ID matches `GLOB`")
	c.Flags().BoolVar(&asJSON, "json", false, "print the vectors as JSON")
	return c
}
