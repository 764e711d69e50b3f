package main

import (
	"fmt"
	"os"

	"github.com/lwsbt/lwsbt"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/render"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/spf13/cobra"
)

func newCoverage() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "coverage [--spec FILE] [VECTORS...]",
		Short: "show which requirements of SPEC.md have vectors",
		Long: `coverage shows for each clause of SPEC.md, and each MUST in it, how many vectors
must be accepted and how many rejected. It exits with 1 when a MUST has no
vector, when a vector names no clause or one that SPEC.md lacks, when an example
in SPEC.md is not executed or does not pass, and when a reason of rejection has
no vector.`,
		Example: "btconform coverage --spec SPEC.md",
		RunE: func(c *cobra.Command, args []string) error {
			name, text := conformance.SpecFile, lwsbt.Spec
			if file != "" {
				data, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				name, text = file, string(data)
			}
			spec, err := conformance.ParseSpec(name, text)
			if err != nil {
				return err
			}
			set, err := loadVectors(c, args)
			if err != nil {
				return err
			}
			cover, err := conformance.Cover(spec, set)
			if err != nil {
				return failed(err)
			}
			if err := render.Coverage(c.OutOrStdout(), cover); err != nil {
				return failed(err)
			}
			for _, fault := range cover.Faults {
				fmt.Fprintf(c.ErrOrStderr(), "btconform: %s\n", cli.Printable(fault))
			}
			if len(cover.Faults) > 0 {
				return cli.Exit(cli.Short)
			}
			return nil
		},
	}
	c.Flags().StringVar(&file, "spec", "", "another SPEC.md than the one built in, at `FILE`")
	return c
}
