// Btheap reads logs with heap dumps and shows which functions hold memory: call sites,
// call trees, differences, exports and an HTML page.
package main

import (
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/internal/cli"
)

func main() {
	// Nothing writes to floor, so it takes no memory. But it counts as heap: the garbage collector begins at
	// a heap of 48 MB.
	floor := make([]byte, 32<<20)
	code := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	runtime.KeepAlive(floor)
	os.Exit(code)
}

const about = `btheap shows which functions hold memory. It reads logs with heap dumps of
libwebsockets (~m# lines) and of firmware with lwsbt.c (~m# or ~p# lines),
recordings, and heap traces of ESP-IDF, NuttX, Zephyr and others, plain or
compressed. Without a command, it sums up: what leaks and until when, the
largest call paths, and what is free. With '-' as FILE, it reads standard input.`

const examples = `
btheap device.log                        what leaks, until when, what is free
btheap top -e app.elf device.log         which functions hold how much
btheap leaks -e app.elf device.log       what leaks, and how fast
btheap html -e app.elf -o heap.html device.log
btheap diff before.log after.log         what changed`

const exitCodes = `0 reported, 1 a log is damaged, 2 usage, unreadable input, no record, or it is
not clear where dumps begin (give --split), 3 the output cannot be written.`

// leakExitCodes are those of the commands with --fail-over.
const leakExitCodes = `0 reported, 1 a log is damaged, or the heap leaks more than --fail-over
allows, 2 usage, unreadable input, no record, or it is not clear where dumps
begin (give --split), 3 the output cannot be written.`

// newCommand returns the root command.
func newCommand() *cobra.Command {
	root := cli.Root(&cobra.Command{Use: "btheap [COMMAND] [flags] FILE...", Long: about, Example: examples})
	addSummary(root)
	cli.ExitCodes(root, exitCodes)
	root.AddCommand(leaksCommand(), liveCommand(), topCommand(), diffCommand(), dumpsCommand(), mapCommand(),
		htmlCommand(), exportCommand())
	return root
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newCommand(), args, stdin, stdout, stderr)
}
