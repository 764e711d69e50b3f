package main

import (
	"errors"
	"fmt"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/spf13/cobra"
)

func newServe() *cobra.Command {
	return &cobra.Command{
		Use:     "serve",
		Short:   "run the codec as a testee: BTP/1 on stdin and stdout",
		Long:    "Serve answers BTP/1 on stdin with the codec of this module, all operations.",
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
}
