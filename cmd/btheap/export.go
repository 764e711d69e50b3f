package main

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/internal/cli"
	heap "github.com/lwsbt/lwsbt/profile"
)

func exportCommand() *cobra.Command {
	s := &session{last: true}
	format := ""
	c := s.command(&cobra.Command{
		Use: "export [flags] [FILE...]", Short: "write the profile for other tools",
		Long: `export writes the profile for other tools: pprof, folded (flamegraph.pl),
speedscope, dhat (valgrind's dh_view.html), heaptrack, jsonl or csv.`,
		Example: "btheap export -F pprof -o heap.pb.gz -e app.elf device.log\nbtheap export -F folded -e app.elf device.log | flamegraph.pl > heap.svg",
	}, heap.ByLine, func(args []string) ([]string, error) {
		switch {
		case format == "":
			return nil, fmt.Errorf("expected --format: %s", strings.Join(heap.Formats(), ", "))
		case !slices.Contains(heap.Formats(), format):
			return nil, fmt.Errorf("--format %q, expected %s", format, strings.Join(heap.Formats(), ", "))
		case slices.Contains(byAddress, format) && s.c.Flags().Changed("by"):
			return nil, fmt.Errorf("--by has no effect here: --format %s has functions, files and lines", format)
		case format != "folded" && s.c.Flags().Changed("weight"):
			return nil, fmt.Errorf("--weight has no effect here: --format %s has bytes and counts", format)
		case heap.Binary(format) && s.output == "" && cli.IsTerminal(s.c.OutOrStdout()):
			return nil, fmt.Errorf("--format %s is binary: give -o FILE, or a pipe", format)
		}
		return args, nil
	}, s.read, func(w io.Writer) error {
		o := heap.ExportOptions{Weight: s.w, Program: "btheap"}
		if format == "dhat" && s.at == "" && s.Dump == "" {
			o.Replay = s.replay
		}
		var p *heap.Profile
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
	})
	s.addAll(c, allFrames, oneOutput)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVarP(&format, "format", "F", "", "write format `NAME`: pprof, folded, speedscope, dhat,\nheaptrack, jsonl, csv")
	cli.AddFlags(c, "Export", f)
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(heap.Formats(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// byAddress lists the formats that hold addresses with functions, files and lines. The
// program that reads the file groups them.
var byAddress = []string{"pprof", "dhat", "heaptrack"}

func webCommand() *cobra.Command {
	s := &session{last: true}
	port := 0
	noBrowser := false
	c := s.command(&cobra.Command{
		Use: "web [flags] [FILE...]", Short: "show the profile in pprof's web interface",
		Long:    "web serves pprof's web interface for the profile until interrupted, to browsers\non this machine only.",
		Example: "btheap web -e app.elf device.log",
	}, heap.ByLine, func(args []string) ([]string, error) {
		if port < 0 || port > 65535 {
			return nil, fmt.Errorf("--port %d, expected 1 to 65535, or 0 for any", port)
		}
		return args, nil
	}, s.read, func(io.Writer) error {
		p, err := s.one()
		if err != nil {
			return err
		}
		if few, left := heaviest(p.Dumps()[0], s.w, webPaths); left > 0 {
			s.note("the pages show the %s largest call paths; the other %s are added up as %q", cli.Number(webPaths), cli.Number(left), heap.Other)
			if p, err = s.profile([]*heap.Dump{few}); err != nil {
				return err
			}
		}
		prof, _ := p.Pprof()
		s.stopReading() // from here on, Ctrl-C ends the process
		return serve(prof, title(p.Dumps()[0]), port, noBrowser)
	})
	s.add(c, "Symbols", symbolFlags...)
	s.add(c, "Input", inputFlags...)
	s.add(c, "Frames", append(frameFlags, "at", "max-paths")...)
	s.add(c, "Output", "weight")
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.IntVar(&port, "port", 0, "listen on port `N`, 0 for any free one")
	f.BoolVar(&noBrowser, "no-browser", false, "do not start a browser")
	cli.AddFlags(c, "Web", f)
	return c
}

// webPaths is the most call paths in pprof's pages. Package pprof takes about 10 KB for each.
const webPaths = 100_000

// heaviest returns a dump with the n call paths that hold the most, and with all others
// added up as [heap.Other]. It also returns the number of the others.
func heaviest(d *heap.Dump, w heap.Weight, n int) (few *heap.Dump, left int) {
	var sums []uint64
	for a := range d.Allocations() {
		sums = append(sums, w.Of(a.Value))
	}
	if len(sums) <= n {
		return d, 0
	}
	slices.Sort(sums)
	least := sums[len(sums)-n]
	b := heap.NewBuilder(n) // call paths beyond n are one
	for _, heavy := range []bool{true, false} {
		for a := range d.Allocations() {
			if w.Of(a.Value) > least == heavy {
				b.Add(a.Path, a.Value)
			}
		}
	}
	return b.End(*d), len(sums) - n
}

// serve runs pprof's web interface on the loopback interface.
func serve(prof *profile.Profile, name string, port int, noBrowser bool) error {
	if port == 0 { // pprof needs a port number
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return cli.Failedf("%w", err)
		}
		port = l.Addr().(*net.TCPAddr).Port
		l.Close()
	}
	args := []string{fmt.Sprintf("-http=127.0.0.1:%d", port), "-symbolize=none"}
	if noBrowser {
		args = append(args, "-no_browser")
	}
	if len(prof.Mapping) == 0 { // the page title is the file of the first mapping
		prof.Mapping = []*profile.Mapping{{ID: 1, File: name}}
	}
	err := driver.PProf(&driver.Options{
		Flagset:    newPprofFlags(append(args, name)),
		Fetch:      fixed{prof},
		HTTPServer: serveLocal,
	})
	if err != nil {
		return cli.Failedf("%w", err)
	}
	return nil
}

// fixed is a fetcher that returns the same profile for every source.
type fixed struct{ prof *profile.Profile }

// Fetch returns no source name: with a name, pprof would save a copy under the user's home.
func (f fixed) Fetch(string, time.Duration, time.Duration) (*profile.Profile, string, error) {
	return f.prof, "", nil
}
