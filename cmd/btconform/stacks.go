package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
	"github.com/spf13/pflag"
)

var stacksCommand = command{"stacks", "stacks to record vectors from", stacks}

const stacksUsage = `Usage:
  btconform stacks --word 32|64 [--seed N]

Prints the stacks that ref-c/vectors are recorded from, a line each:
ID, size and addresses in hex (- for none), separated by tabs.

Example:
  btconform stacks --word 64 | ref-c/btref vectors > x86_64.btv
`

func stacks(s streams, args []string) int {
	flags := pflag.NewFlagSet("stacks", pflag.ContinueOnError)
	word := flags.Int("word", 64, "`BITS` of an address, 32 or 64")
	seed := flags.Uint64("seed", 1, "another `N` changes numbers, not IDs")
	if code, done := parseFlags(s, flags, args, stacksUsage); done {
		return code
	}
	if flags.NArg() > 0 {
		return s.usage("stacks %s, expected no argument", flags.Arg(0))
	}
	if *word != 32 && *word != 64 {
		return s.usage("--word %d, expected 32 or 64", *word)
	}
	w := bufio.NewWriter(s.out)
	for _, n := range gen.VectorStacks(*word, *seed) {
		writeStack(w, n.ID, &n.Stack)
	}
	if err := w.Flush(); err != nil {
		return s.fail(err)
	}
	return exitOK
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
