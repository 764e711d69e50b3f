//go:build linux

// Btrecord runs a Linux program and records its heap.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/internal/cli"
)

func main() { os.Exit(cli.Run(command(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// command returns the root command.
func command() *cobra.Command {
	var o options
	root := cli.Root(&cobra.Command{
		Use:   "btrecord [flags] -- PROGRAM [ARG...]",
		Short: "btrecord runs a Linux program and records its heap.",
		Long: `
btrecord runs a program with a preloaded library that records its heap. The
library writes dumps of the live allocations with their call stacks, when the
program ends and when asked for, and the modules that are loaded; with --events
also each allocation and free. The recording is a log: btheap, btdecode and
btstats read it as it is, and find functions by the build-ids and paths in it.`,
		Example: `
btrecord -- git status                    writes git.rec
btheap top git.rec                        what was left at the end
btrecord --at-peak -o peak.rec -- make    the heap when it was largest
btrecord --events -- ./app                each allocation and free
btrecord dump $(pidof app)                a dump now
btrecord library --cc mips-linux-gnu-gcc -o liblwsbt.so   for a router`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.BadArgsf("expected a program to run")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	})
	cli.ExitCodes(root, `0 recorded, 2 usage, or no such program, 3 the program failed or was not
recorded, or there is no C compiler to build the library.`)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVarP(&o.output, "output", "o", "", "write to `FILE` (default PROGRAM.rec, or PROGRAM.2.rec and so on if that exists)")
	f.BoolVar(&o.events, "events", false, "record each allocation and free, too")
	f.DurationVar(&o.interval, "interval", 0, "write a dump every `TIME`, such as 10s")
	f.BoolVar(&o.atPeak, "at-peak", false, "write a dump at each new peak that is 1 % above the last")
	f.BoolVar(&o.children, "children", false, "record child processes, too, each in FILE.PID")
	f.IntVar(&o.signal, "signal", 0, "write a dump on signal number `N` (default SIGUSR1)")
	f.StringVar(&o.library, "library", "", "preload `FILE`, built by btrecord library")
	f.StringVar(&o.cc, "cc", "", "build the library with compiler `CC`")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no notes on stderr")
	cli.AddFlags(root, "Recording", f)
	root.Flags().SetInterspersed(false)
	root.AddCommand(dumpCommand(), libraryCommand())
	return root
}
