package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

var listCommand = command{"list", "the vectors, a line each", list}

const listUsage = `Usage:
  btconform list [--run GLOB] [VECTORS...]

Prints ID, operations, clauses and place of each vector, separated by tabs.

Example:
  btconform list --run 'delta/*' | cut -f1
`

func list(s streams, args []string) int {
	flags := pflag.NewFlagSet("list", pflag.ContinueOnError)
	globs := flags.StringArray("run", nil, "only vectors whose ID fits `GLOB`")
	if code, done := parseFlags(s, flags, args, listUsage); done {
		return code
	}
	set, err := loadVectors(flags.Args(), s.in)
	if err != nil {
		return s.usage("%v", err)
	}
	if set = set.Select(*globs...); len(set.Vectors) == 0 {
		return s.usage("no vector's ID fits --run %s", strings.Join(*globs, " --run "))
	}
	w := bufio.NewWriter(s.out)
	for _, v := range set.Vectors {
		ops := make([]string, len(v.Ops))
		for i, op := range v.Ops {
			ops[i] = string(op)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.ID, strings.Join(ops, " "), strings.Join(v.Clauses, " "), v.Place())
	}
	if err := w.Flush(); err != nil {
		return s.fail(err)
	}
	return exitOK
}
