// Btdecode turns the compressed backtraces in whole logs into readable
// call stacks.
package main

import (
	"io"
	"os"

	"github.com/lwsbt/lwsbt/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the command; it returns its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newCommand(), args, stdin, stdout, stderr)
}
