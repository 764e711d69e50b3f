package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/device/tools/functions"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// functableCommand returns btcore functable.
func functableCommand() *cobra.Command {
	var printC bool
	c := &cobra.Command{
		Use:   "functable [flags] ELF",
		Short: "write the table of functions into a firmware",
		Long: `
functable writes the sorted table of a program's functions into its ELF file.
With the table, the capture functions of lwsbt's device library find where a
function starts without a search through the code. The program must be compiled
with -DLWSBT_FUNCTIONS_MAX=N, which reserves memory for N functions, 4 bytes for
each. Run functable after linking, and before strip and objcopy.

With --c, it changes nothing, and prints the table as C source to link in place
of the reserved memory. The code must not move: the table belongs behind it.`,
		Example: `
btcore functable fw.elf && arm-none-eabi-objcopy -O binary fw.elf fw.bin`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if printC {
				return printTable(c, args[0])
			}
			t, err := functions.Patch(args[0])
			if err != nil {
				return badELF(args[0], err)
			}
			fmt.Fprintf(c.ErrOrStderr(), "btcore: %s: %d functions, 0x%x to 0x%x\n", args[0], len(t.Start), t.Base, t.End)
			return nil
		},
	}
	c.Flags().BoolVar(&printC, "c", false, "print the table as C source")
	cli.ExitCodes(c, `0 as expected, 2 usage, an unreadable file or no memory for the table in it,
3 something outside failed.`)
	return c
}

func printTable(c *cobra.Command, path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return badELF(path, err)
	}
	defer f.Close()
	t, err := functions.Read(f)
	if err != nil {
		return badELF(path, err)
	}
	return t.WriteC(c.OutOrStdout())
}

// badELF names the file in an error, unless the error does.
func badELF(path string, err error) error {
	var named *fs.PathError
	if errors.As(err, &named) {
		return cli.Usagef("%w", err)
	}
	var format *elf.FormatError
	if errors.Is(err, io.EOF) || errors.As(err, &format) {
		return cli.Usagef("%s: no ELF file: %w", path, err)
	}
	return cli.Usagef("%s: %w", path, err)
}
