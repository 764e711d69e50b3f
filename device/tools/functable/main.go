// Functable makes the table of function starts that capture backends of device/
// use, from the symbols of a program.
package main

import (
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/lwsbt/lwsbt/device/tools/functions"
)

const usage = `usage: functable [-patch] ELF

Makes the sorted table of a program's functions, by which the capture backends
that read prologues find where a function starts.

Without -patch, prints it in C: compile that and link the program once more, with
it in place of capture_functions.c. The code must not move: the table belongs
behind it, as read-only data is in most linker scripts.
With -patch, writes it into ELF, where capture_functions.c has reserved room.

  functable -patch firmware.elf && objcopy -O binary firmware.elf firmware.bin
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("functable", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	patch := flags.Bool("patch", false, "")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, usage)
			return 0
		}
		fmt.Fprintf(stderr, "functable: %v\n%s", err, usage)
		return 2
	}
	if flags.NArg() != 1 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	path := flags.Arg(0)
	if *patch {
		t, err := functions.Patch(path)
		if err != nil {
			fmt.Fprintf(stderr, "functable: %s: %v\n", path, err)
			return 2
		}
		fmt.Fprintf(stderr, "%s: %d functions, 0x%x to 0x%x\n", path, len(t.Start), t.Base, t.End)
		return 0
	}
	f, err := elf.Open(path)
	if err != nil {
		fmt.Fprintf(stderr, "functable: %v\n", err)
		return 2
	}
	defer f.Close()
	t, err := functions.Read(f)
	if err != nil {
		fmt.Fprintf(stderr, "functable: %s: %v\n", path, err)
		return 2
	}
	if err := t.WriteC(stdout); err != nil {
		fmt.Fprintf(stderr, "functable: %v\n", err)
		return 3
	}
	return 0
}
