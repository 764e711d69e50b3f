//go:build linux

package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/record"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func ctlCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "ctl PID on|off|dump",
		Short: "write a dump of a running program, or turn recording on or off",
		Long: `
ctl asks the btrecord that records a program to write a dump of its live
allocations, or to turn the recording on or off. This applies to the program
and its recorded children. Each time the recording is turned on, it begins with
no blocks: blocks that were allocated before are not recorded.`,
		Example: `
btrecord ctl 1234 dump
btrecord ctl 1234 off`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.BadArgsf("expected the PID of a program, and on, off or dump")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			pid, err := strconv.Atoi(args[0])
			if err != nil || pid <= 0 {
				return cli.BadArgsf("%q: expected the PID of a program", args[0])
			}
			r := record.Request(args[1])
			switch r {
			case record.On, record.Off, record.Dump:
			default:
				return cli.BadArgsf("%q: expected on, off or dump", args[1])
			}
			answer, err := record.Control(pid, r)
			if err != nil {
				return cli.Failedf("%w", err)
			}
			fmt.Fprintf(c.ErrOrStderr(), "btrecord: process %d: %s\n", pid, cli.Printable(answer))
			return nil
		},
	}
	cli.ExitCodes(c, `0 done, 2 usage, 3 btrecord does not record the process.`)
	return c
}
