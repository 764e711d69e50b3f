// Btconform tests encoders and decoders of compressed backtraces against SPEC.md.
package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/internal/cli"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newRoot(), args, stdin, stdout, stderr)
}

const about = `btconform tests encoders and decoders of libwebsockets' compressed backtraces
against SPEC.md. TESTEE is a program in any language that reads requests from
standard input and writes answers to standard output, by the protocol BTP/1
(conformance/README.md). Without TESTEE, the codec of this module is tested.

VECTORS are .btv files, directories of them, .md files with examples, or - for
standard input. Without VECTORS, the built-in ones are used.`

const examples = `
btconform                              the codec, on the built-in vectors
btconform ./ref-c/vectors              the codec, on recorded blobs of lws
btconform SPEC.md spec/*.md            the codec, on the examples of these
btconform -- ./decoder --fast          your program
btconform --run 'delta/*' -- ./decoder
btconform --format junit -- ./decoder > report.xml`

const exitCodes = `0 as expected, 1 something failed, 2 usage, unreadable input or nothing to
do, 3 the testee cannot be run or the output cannot be written.`

func newRoot() *cobra.Command {
	var o testOptions
	root := cli.Root(&cobra.Command{
		Use:     "btconform [flags] [VECTORS...] [-- TESTEE args...]",
		Long:    about,
		Example: examples,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(c *cobra.Command, args []string) error { return o.test(c, args) },
	})
	root.AddCommand(newList(), newFuzz())
	root.DisableFlagsInUseLine = true
	cli.ExitCodes(root, exitCodes)
	cli.AddFlags(root, "Testing", o.flags())
	for _, c := range root.Commands() {
		c.DisableFlagsInUseLine = true
	}
	return root
}

// testeeOf splits arguments at -- into paths and the command of the implementation under test.
func testeeOf(c *cobra.Command, args []string) (paths, testee []string, dash bool) {
	if n := c.ArgsLenAtDash(); n >= 0 {
		return args[:n], args[n:], true
	}
	return args, nil, false
}

// errNoTestee is the error of a program whose name is empty.
var errNoTestee = cli.BadArgsf("the name of the program is empty")
