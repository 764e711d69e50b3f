// Btfleet stores the heap dumps of many devices, and reports which call paths leak in which
// firmware.
package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

const about = `btfleet receives the heap dumps of many devices, keeps them in Parquet files in
a directory or a bucket, and says which call paths leak in which firmware, on
how many devices, and how long until their heaps are exhausted.`

const examples = `
btfleet demo                             a simulated fleet, and its page
btfleet serve --store fleet              receive dumps, show the page
btfleet leaks --store fleet --build 5ca1ab1e
btfleet diff --store fleet 5ca1ab1e 0ddba115`

const exitCodes = `0 reported, 1 a fleet leaks or grows by more than --fail-over allows, or an
upload could not be read, 2 usage or unreadable input, 3 the store, the
network or the output failed.`

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
	root.AddCommand(demoCommand(), symbolsCommand(), pushCommand(), serveCommand(), ingestCommand(), compactCommand(), clickhouseCommand(), tokenCommand(), buildIDCommand(),
		buildsCommand(), devicesCommand(), leaksCommand(), diffCommand(), topCommand(), deviceCommand(), htmlCommand(), queryCommand(), simulateCommand())
	return root
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newRoot(), args, stdin, stdout, stderr)
}
