package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/profile/export"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func exportCommand() *cobra.Command {
	s := &session{}
	format := ""
	c := &cobra.Command{
		Use: "export [flags] [FILE...]", Short: "write the profile for other tools",
		Long: `export writes the profile for other tools: as a profile of pprof, which
speedscope reads, too, or folded (flamegraph.pl). For your own scripts,
top --json has the numbers.`,
		Example: "btheap export -F pprof -o heap.pb.gz -e app.elf device.log\npprof -http=: heap.pb.gz\nbtheap export -F folded -e app.elf device.log | flamegraph.pl > heap.svg",
		RunE: func(c *cobra.Command, files []string) error {
			changed := c.Flags().Changed
			switch {
			case format == "":
				return cli.BadArgsf("expected --format: %s", strings.Join(export.Formats(), ", "))
			case !slices.Contains(export.Formats(), format):
				return cli.BadArgsf("--format %q, expected %s", format, strings.Join(export.Formats(), ", "))
			case changed("by") && format == "pprof": // the program that reads the file groups addresses
				return cli.BadArgsf("--by has no effect here: --format %s has functions, files and lines", format)
			case changed("weight") && format != "folded":
				return cli.BadArgsf("--weight has no effect here: --format %s has bytes and counts", format)
			case format == "pprof" && s.output == "" && cli.IsTerminal(c.OutOrStdout()):
				return cli.BadArgsf("--format %s is binary: give -o FILE, or a pipe", format)
			}
			return s.run(c, files, func(w io.Writer) error { return s.writeExport(w, format) })
		},
	}
	f := c.Flags()
	f.StringVarP(&format, "format", "F", "", "write format `NAME`: pprof or folded")
	s.addAll(c, "Export", oneFrames, oneOutput)
	return c
}

// writeExport writes a dump in a format.
func (s *session) writeExport(w io.Writer, format string) error {
	if err := s.read(lastDumps); err != nil {
		return err
	}
	p, err := s.profile(s.chosen())
	if err != nil {
		return err
	}
	notes, err := export.Write(w, p, format, s.w)
	for _, n := range notes {
		s.note("%s", n)
	}
	return err
}
