// Btcore reads the heap and the call stacks from a core file or the RAM of a device.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/internal/cli"
)

func main() { os.Exit(cli.Run(command(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// command returns the root command.
func command() *cobra.Command {
	root := cli.Root(&cobra.Command{
		Use:   "btcore",
		Short: "btcore reads the heap and call stacks out of a core file, crash dump or RAM image.",
		Long: `
btcore reads the memory image of a program: a core file of Linux, of gdb or of
qemu's dump-guest-memory, the RAM of a device, or the crash dump of Zephyr,
ESP-IDF, NuttX, CrashCatcher, Breakpad or Crashpad, also in a serial log. It
finds the blocks of libwebsockets or of lwsbt's device library, with their call
stacks, or else those of the allocator: of glibc, musl, jemalloc, newlib,
picolibc, FreeRTOS, ESP-IDF, Zephyr, ThreadX, NuttX, RT-Thread, lwIP or TLSF. It
prints the heap as a recording that btheap reads, or which blocks were
overwritten, which leaked.

An image contains all data of the program, also keys and passwords. btcore
prints no contents of blocks.`,
		Example: `
btcore heap core -e app.elf | btheap top         what holds the memory
btcore heap --leaks core -e app.elf              leaks
btcore holds core -e app.elf                     which variables hold it
btcore heap --damage --ram 0x20000000=ram.bin -e fw.elf
btcore stacks serial.log -e fw.elf               the call stacks
btcore tasks serial.log -e fw.elf                the tasks of its kernel`,
		Args: cobra.NoArgs,
	})
	root.AddCommand(heapCommand(), holdsCommand(), stacksCommand(), tasksCommand(), functableCommand())
	return root
}
