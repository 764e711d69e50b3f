package main

import (
	"fmt"
	"os"

	"github.com/lwsbt/lwsbt"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/render"
	"github.com/spf13/pflag"
)

var coverageCommand = command{"coverage", "which clauses of SPEC.md have vectors", coverage}

const coverageUsage = `Usage:
  btconform coverage [--spec FILE] [VECTORS...]

Shows for each clause of SPEC.md how many vectors must be accepted and how many
rejected. Fails when a clause with a MUST has none, when a vector names no
clause or one that SPEC.md lacks, when an example in SPEC.md is not executed
or does not pass, and when a reason of rejection has no vector.
`

func coverage(s streams, args []string) int {
	flags := pflag.NewFlagSet("coverage", pflag.ContinueOnError)
	file := flags.String("spec", "", "another SPEC.md than the one built in, at `FILE`")
	if code, done := parseFlags(s, flags, args, coverageUsage); done {
		return code
	}
	name, text := conformance.SpecFile, lwsbt.Spec
	if *file != "" {
		data, err := os.ReadFile(*file)
		if err != nil {
			return s.usage("%v", err)
		}
		name, text = *file, string(data)
	}
	spec, err := conformance.ParseSpec(name, text)
	if err != nil {
		return s.usage("%v", err)
	}
	set, err := loadVectors(flags.Args(), s.in)
	if err != nil {
		return s.usage("%v", err)
	}
	c, err := conformance.Cover(spec, set)
	if err != nil {
		return s.fail(err)
	}
	if err := render.Coverage(s.out, c); err != nil {
		return s.fail(err)
	}
	for _, fault := range c.Faults {
		fmt.Fprintf(s.err, "btconform: %s\n", fault)
	}
	if len(c.Faults) > 0 {
		return exitShort
	}
	return exitOK
}
