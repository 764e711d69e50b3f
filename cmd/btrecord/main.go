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
		Short: "Btrecord runs a Linux program and records its heap.",
		Long: `
Btrecord runs a program with a preloaded library that records its heap: dumps of
the live allocations with their call stacks, at the end and when asked for, and
the modules that are loaded; with --events each allocation and free. The
recording is a log: btheap, btdecode and btstats read it as it is, and find
names by the build-ids and paths in it.`,
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
	f.StringVarP(&o.output, "output", "o", "", "write to `FILE` (default PROGRAM.rec, or PROGRAM.2.rec\nand so on if that exists)")
	f.BoolVar(&o.events, "events", false, "record each allocation and free, too")
	f.DurationVar(&o.interval, "interval", 0, "a dump every `TIME`, such as 10s")
	f.BoolVar(&o.atPeak, "at-peak", false, "a dump at each new peak, 1 % over the one before")
	f.BoolVar(&o.children, "children", false, "record children, too: PID, in FILE.PID")
	f.IntVar(&o.signal, "signal", 0, "a dump on signal `N` (default SIGUSR1)")
	f.StringVar(&o.library, "library", "", "preload `FILE`, made by btrecord library")
	f.StringVar(&o.cc, "cc", "", "build the library by compiler `CC`")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no notes on stderr")
	cli.AddFlags(root, "Recording", f)
	root.Flags().SetInterspersed(false)
	root.AddCommand(dumpCommand(), libraryCommand())
	return root
}
