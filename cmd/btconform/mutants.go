package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/lwsbt/lwsbt/conformance/mutant"
	"github.com/spf13/pflag"
)

var mutantsCommand = command{"mutants", "codecs with one bug each, and the vectors that tell", mutants}

const mutantsUsage = `Usage:
  btconform mutants [--all] [VECTORS...]

Puts the vectors to decoders and encoders that have exactly one bug each, and
prints for each the vectors that failed. One that no vector tells from a right
one survives: then a vector is missing. Exit code 1 if any does.

Example:
  btconform mutants | grep -A1 spill
`

func mutants(s streams, args []string) int {
	flags := pflag.NewFlagSet("mutants", pflag.ContinueOnError)
	all := flags.Bool("all", false, "all vectors that failed, not as many as fit a line")
	if code, done := parseFlags(s, flags, args, mutantsUsage); done {
		return code
	}
	set, err := loadVectors(flags.Args(), s.in)
	if err != nil {
		return s.usage("%v", err)
	}
	killed, err := mutant.Kill(set)
	if err != nil {
		return s.fail(err)
	}
	w := bufio.NewWriter(s.out)
	decoders, survivors := 0, 0
	for _, k := range killed {
		if !k.Encoder {
			decoders++
		}
		fmt.Fprintf(w, "%s: %s\n", k.Name, k.Bug)
		if len(k.By) == 0 {
			survivors++
			fmt.Fprintln(w, "    SURVIVES: no vector tells it from a right one")
			continue
		}
		fmt.Fprintf(w, "    %s\n", listed(fmt.Sprintf("killed by %d:", len(k.By)), k.By, *all))
	}
	fmt.Fprintf(w, "%d decoders and %d encoders, %d of them survive %d vectors\n",
		decoders, len(killed)-decoders, survivors, len(set.Vectors))
	if err := w.Flush(); err != nil {
		return s.fail(err)
	}
	if survivors > 0 {
		return exitShort
	}
	return exitOK
}

// listed is head and as many IDs as fit a line of 76 characters, or all.
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
