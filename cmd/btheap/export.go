package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/profile"
)

func exportCommand() *cobra.Command {
	s := &session{last: true, unit: profile.ByLine}
	format := ""
	c := s.command(&cobra.Command{
		Use: "export [flags] [FILE...]", Short: "write the profile for other tools",
		Long: `export writes the profile for other tools: pprof, folded (flamegraph.pl),
speedscope, dhat (valgrind's dh_view.html) or csv.`,
		Example: "btheap export -F pprof -o heap.pb.gz -e app.elf device.log\npprof -http=: heap.pb.gz\nbtheap export -F folded -e app.elf device.log | flamegraph.pl > heap.svg",
	})
	s.args = func(args []string) ([]string, error) {
		switch {
		case format == "":
			return nil, fmt.Errorf("expected --format: %s", strings.Join(profile.Formats(), ", "))
		case !slices.Contains(profile.Formats(), format):
			return nil, fmt.Errorf("--format %q, expected %s", format, strings.Join(profile.Formats(), ", "))
		case slices.Contains(byAddress, format) && s.c.Flags().Changed("by"):
			return nil, fmt.Errorf("--by has no effect here: --format %s has functions, files and lines", format)
		case format != "folded" && s.c.Flags().Changed("weight"):
			return nil, fmt.Errorf("--weight has no effect here: --format %s has bytes and counts", format)
		case format == "pprof" && s.output == "" && cli.IsTerminal(s.c.OutOrStdout()):
			return nil, fmt.Errorf("--format %s is binary: give -o FILE, or a pipe", format)
		}
		return args, nil
	}
	s.report = func(w io.Writer) error {
		o := profile.ExportOptions{Weight: s.w, Program: "btheap"}
		if format == "dhat" && s.at == "" && s.Dump == "" {
			o.Replay = s.replay
		}
		var p *profile.Profile
		var err error
		if o.Replay != nil { // the dump is not used
			p, err = s.profile(s.dumps[:1])
		} else {
			p, err = s.one()
		}
		if err != nil {
			return err
		}
		notes, err := p.Export(w, format, o)
		for _, n := range notes {
			s.note("%s", n)
		}
		return err
	}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVarP(&format, "format", "F", "", "write format `NAME`: pprof, folded, speedscope, dhat, csv")
	cli.AddFlags(c, "Export", f)
	s.addAll(c, allFrames, oneOutput)
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(profile.Formats(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// byAddress lists the formats that hold addresses with functions, files and lines. The
// program that reads the file groups them.
var byAddress = []string{"pprof", "dhat"}
