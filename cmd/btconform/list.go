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
	c := &cobra.Command{
		Use:     "list [--run GLOB] [VECTORS...]",
		Short:   "list the vectors",
		Long:    "list prints the ID, operations, clauses, and file and line of each vector,\nseparated by tabs.",
		Example: "btconform list --run 'delta/*' | cut -f1",
		RunE: func(c *cobra.Command, args []string) error {
			set, err := loadVectors(c, args)
			if err != nil {
				return err
			}
			if set = set.Select(globs...); len(set.Vectors) == 0 {
				return cli.Usagef("no vector's ID matches --run %s", strings.Join(globs, " --run "))
			}
			w := bufio.NewWriter(c.OutOrStdout())
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
	c.Flags().StringArrayVar(&globs, "run", nil, "only vectors whose ID matches `GLOB`")
	return c
}
