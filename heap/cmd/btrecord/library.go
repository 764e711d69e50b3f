//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/record"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func libraryCommand() *cobra.Command {
	var cc, output string
	c := &cobra.Command{
		Use:   "library [flags]",
		Short: "build the library for a machine, such as a router",
		Long: `
library builds the preloaded library with a C compiler, for the machine and the
C library (glibc or musl) of the compiler. btrecord itself is a static Go
program, so a router needs only this library and btrecord:

  GOARCH=mips GOMIPS=softfloat CGO_ENABLED=0 go build ./heap/cmd/btrecord
  router# btrecord --library liblwsbt.so -- app`,
		Example: `
btrecord library --cc mips-linux-gnu-gcc -o liblwsbt.so
btrecord library --cc 'musl-gcc -Os' -o liblwsbt.so`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := cli.Interruptible(context.Background()) // the directory is removed even after an interrupt
			defer stop()
			if err := record.Build(ctx, cc, output); err != nil {
				return exitFailed(err, cli.Failed)
			}
			fmt.Fprintf(c.ErrOrStderr(), "btrecord: built %s\n", output)
			return nil
		},
	}
	cli.ExitCodes(c, `0 built, 2 usage, 3 the compiler or something else outside failed.`)
	c.Flags().StringVar(&cc, "cc", "cc", "C compiler `CC`, and its options")
	c.Flags().StringVarP(&output, "output", "o", record.LibraryName, "write to `FILE`")
	return c
}
