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
btrecord runs a program with a preloaded library that tells btrecord of each
allocation and free. btrecord writes a recording: the live allocations, added up
by call path, when the program ends, and with --events each allocation and free.
btheap, btdecode and btstats read recordings like logs, and find functions by
the build IDs and paths in them. With --pid, btrecord attaches to a process that
runs already.`,
		Example: `
btrecord -- git status                    writes git.rec
btheap top git.rec                        live blocks at the end
btrecord --at-peak -o peak.rec -- make    also the heap at its peak
btrecord --events -- ./app                each allocation and free
btrecord --sample 512K -- ./server        one block per 512 KB, on average
btrecord ctl $(pidof app) dump            write a dump now
btrecord --pid $(pidof app)               attach to a process, until Ctrl-C
btrecord library --cc mips-linux-gnu-gcc -o liblwsbt.so   for a router`,
		Args: func(c *cobra.Command, args []string) error {
			switch attach := c.Flags().Changed("pid"); {
			case attach && o.pid <= 0:
				return cli.BadArgsf("--pid %d: expected the PID of a process", o.pid)
			case attach && len(args) > 0:
				return cli.BadArgsf("--pid records a process that runs, expected no program to run")
			case !attach && len(args) == 0:
				return cli.BadArgsf("expected a program to run")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	})
	cli.ExitCodes(root, `that of the program, or 128 + the number of the signal that ended it.
125 it was not recorded, or not completely, 126 it cannot be run, 127 there is
no such program, 2 usage.`)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVarP(&o.output, "output", "o", "", "write to `FILE` (default PROGRAM.rec, or PROGRAM.2.rec and so on if that exists)")
	f.BoolVar(&o.events, "events", false, "also record each allocation and free")
	f.DurationVar(&o.interval, "interval", 0, "write a dump every `TIME`, such as 10s")
	f.BoolVar(&o.addresses, "addresses", false, "dumps have the address and size of each block, for btheap map")
	f.BoolVar(&o.atPeak, "at-peak", false, "also write a dump of the heap at its peak")
	f.StringVar(&o.sample, "sample", "", "record one block per `BYTES` allocated, on average, such as 512K")
	f.BoolVar(&o.children, "children", false, "record child processes, too, each in FILE.PID")
	f.BoolVar(&o.startOff, "start-off", false, "record nothing until btrecord ctl PID on")
	f.IntVar(&o.pid, "pid", 0, "attach to process `PID`, through gdb, instead of running a program")
	f.DurationVar(&o.duration, "duration", 0, "with --pid: detach after `TIME`, such as 30s")
	f.StringVar(&o.preload, "library", "", "preload `FILE`, built by btrecord library")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "also print how much memory the recording took")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no notes on stderr")
	cli.AddFlags(root, "Recording", f)
	root.Flags().SetInterspersed(false)
	root.AddCommand(ctlCommand(), libraryCommand())
	return root
}
