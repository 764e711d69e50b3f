package main

import (
	"errors"
	"fmt"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/spf13/cobra"
)

func newServe() *cobra.Command {
	c := &cobra.Command{
		Use:     "serve",
		Short:   "run the codec as a testee: BTP/1 on stdin and stdout",
		Long:    "serve is a testee: it answers requests of BTP/1 on standard input with the codec\nof this module. It offers all operations.",
		Example: `printf 'hello btp=1\ndecode 1 00100004 word=64\n' | btconform serve`,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			testee, err := conformance.Codec(c.Context())
			if err != nil {
				return failed(err)
			}
			err = conformance.Serve(testee, c.InOrStdin(), c.OutOrStdout())
			var bad *conformance.ParseError
			switch {
			case err == nil:
				return nil
			case errors.As(err, &bad):
				return fmt.Errorf("serve: %w", bad)
			}
			return failed(err)
		},
	}
	cli.ExitCodes(c, `0 the input ended, 2 usage or a malformed request, 3 the output cannot be
written.`)
	return c
}
