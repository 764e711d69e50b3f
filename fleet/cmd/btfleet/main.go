// Btfleet stores the heap dumps of many devices, and reports which call paths leak in which
// firmware.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

const about = `btfleet receives the heap dumps of many devices, keeps them in Parquet files
or in ClickHouse, and reports which call paths leak in which firmware, on how
many devices, and how long until their heaps are exhausted.`

const examples = `
btfleet demo --store fleet               a simulated fleet
btfleet serve --store fleet              receive dumps, show the page
btfleet leaks --store fleet --build 5ca1ab1e
btfleet diff --store fleet 5ca1ab1e 0ddba115`

const exitCodes = `0 done, 1 the data falls short: see the command, 2 usage or unreadable input,
3 the store, the network or the output failed.`

// Exit codes of questions.
const (
	questionCodes = `0 answered, 1 a file of the store is damaged: the answer is without it,
2 usage, no such store or build, 3 the store or the output failed.`
	failOverCodes = `0 answered, 1 %s,
or a file of the store is damaged, 2 usage, no such store or build,
3 the store or the output failed.`
)

// ownCodes has the exit codes of each command.
var ownCodes = map[string]string{
	"demo":       "0 written, 2 usage, or a store that has dumps, 3 the store failed.",
	"symbols":    "0 named, 2 usage or a file that is not ELF, 3 the store failed.",
	"serve":      "0 ended by an interrupt, after all was written, 2 usage or a file that cannot\nbe read, 3 the address, the spool or the store failed.",
	"ingest":     "0 all files are in the store, 1 some were refused, 2 usage, or a file that is\nnot there, 3 the store failed.",
	"compact":    "0 done, 1 a file is damaged, and was moved to quarantine, 2 usage or no such\nstore, 3 the store failed.",
	"clickhouse": "0 printed, 2 usage, 3 the output failed.",
	"token":      "0 printed, 2 usage, 3 the output failed.",
	"leaks":      fmt.Sprintf(failOverCodes, "a leak over --fail-over or without a rate, or nothing examined"),
	"rollout":    fmt.Sprintf(failOverCodes, "a new leak, with --fail-on new-leak, or nothing examined"),
	"diff":       fmt.Sprintf(failOverCodes, "the growth is over --fail-over, or the builds do not compare"),
	"builds":     questionCodes, "devices": questionCodes, "top": questionCodes, "device": questionCodes, "query": questionCodes,
}

// newRoot returns the root command.
func newRoot() *cobra.Command {
	root := cli.Root(&cobra.Command{Use: "btfleet COMMAND [flags]", Long: about, Example: examples,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.BadArgsf("expected a command, such as btfleet serve")
			}
			return cli.BadArgsf("%q is not a command%s", args[0], cli.Suggest(c, args[0]))
		},
		RunE: func(*cobra.Command, []string) error { return nil }})
	cli.ExitCodes(root, exitCodes)
	root.AddCommand(demoCommand(), symbolsCommand(), serveCommand(), ingestCommand(), compactCommand(), clickhouseCommand(), tokenCommand(),
		buildsCommand(), leaksCommand(), diffCommand(), rolloutCommand(), topCommand())
	for _, c := range root.Commands() {
		cli.ExitCodes(c, ownCodes[c.Name()])
		check := c.Args
		c.Args = func(c *cobra.Command, args []string) error {
			if check(c, args) != nil {
				return cli.BadArgsf("expected btfleet %s", c.Use)
			}
			return nil
		}
	}
	return root
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newRoot(), args, stdin, stdout, stderr)
}
