package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/export"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func exportCommand() *cobra.Command {
	s := &session{}
	format := ""
	c := &cobra.Command{
		Use: "export [flags] [FILE...]", Short: "write the profile for other tools",
		Long: `export writes the profile for other tools: pprof, folded (flamegraph.pl),
speedscope, dhat (valgrind's dh_view.html) or csv.`,
		Example: "btheap export -F pprof -o heap.pb.gz -e app.elf device.log\npprof -http=: heap.pb.gz\nbtheap export -F folded -e app.elf device.log | flamegraph.pl > heap.svg",
		RunE: func(c *cobra.Command, files []string) error {
			changed := c.Flags().Changed
			switch {
			case format == "":
				return cli.BadArgsf("expected --format: %s", strings.Join(export.Formats(), ", "))
			case !slices.Contains(export.Formats(), format):
				return cli.BadArgsf("--format %q, expected %s", format, strings.Join(export.Formats(), ", "))
			case changed("by") && (format == "pprof" || format == "dhat"): // the program that reads the file groups addresses
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
	f.StringVarP(&format, "format", "F", "", "write format `NAME`: pprof, folded, speedscope, dhat, csv")
	s.addAll(c, "Export", oneFrames, oneOutput)
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(export.Formats(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// writeExport writes a dump in a format or, as DHAT, all events.
func (s *session) writeExport(w io.Writer, format string) error {
	if err := s.read(lastDumps); err != nil {
		return err
	}
	o := export.Options{Weight: s.w, Program: "btheap"}
	var d *profile.Dump
	if format == "dhat" && s.moment == nil && s.Dump == "" && s.replay != nil {
		o.Replay, d = s.replay, s.dumps[0] // the dump is not used
	} else {
		d = s.chosen()
	}
	p, err := s.profile(d)
	if err != nil {
		return err
	}
	notes, err := export.Write(w, p, format, o)
	for _, n := range notes {
		s.note("%s", n)
	}
	return err
}
