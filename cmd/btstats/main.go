// Btstats reports the size of the compressed backtraces in a log, their size in other
// encodings, and which settings to choose.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cli/logflags"
	"github.com/lwsbt/lwsbt/stats"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newCommand(), args, stdin, stdout, stderr)
}

func newCommand() *cobra.Command {
	c := &config{}
	root := cli.Root(&cobra.Command{
		Use:   "btstats [flags] FILE...",
		Short: "report what compressed backtraces cost, and could cost",
		Long: `btstats reports on the ~m# and ~b# records in logs: whether compression is worth
it, the bytes that records take, and which SNIP_PRE and SNIP_POST to set: how
many frames lws leaves out at the inner and the outer end of each stack. A FILE
may be compressed by gzip, zstd or xz; - is standard input. The machine that
encoded the log is inferred, unless --machine names it: exact32, exact64,
wrap32, wrap64, zero32 or zero64.`,
		Example: "btstats --captured 2,1 serial.log",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(args); err != nil {
				return cli.BadArgs(err)
			}
			return c.report(cmd)
		},
	})
	cli.ExitCodes(root, `0 a report was printed, 1 a bad record under --strict, or a log not read to
its end, 2 usage, unreadable input or no record in it, 3 the report could not
be written.`)
	c.addFlags(root)
	return root
}

// config holds the values of the flags.
type config struct {
	logflags.Flags
	format   string
	captured string

	given *codec.Machine // of --machine
	pre   int
	post  int
	args  []string
}

func (c *config) addFlags(root *cobra.Command) {
	group := func(name string, define func(f *pflag.FlagSet)) {
		f := pflag.NewFlagSet(name, pflag.ContinueOnError)
		define(f)
		cli.AddFlags(root, name, f)
	}
	group("Output", func(f *pflag.FlagSet) {
		f.StringVar(&c.format, "format", "table", "write format `NAME`: table or json")
	})
	group("Dump", func(f *pflag.FlagSet) {
		f.StringVar(&c.captured, "captured", "", "`PRE,POST`: the SNIP_PRE and SNIP_POST that the dump was captured with, or skip and post of device/ (default: 2,1, or 0,0 for device/)")
	})
	c.Add(root, "Dump", "machine", "strict")
}

// check reads the values of flags, and checks them and their combinations.
func (c *config) check(args []string) error {
	c.args = args
	switch c.format {
	case "table", "json":
	default:
		return fmt.Errorf("--format %q: expected table or json", c.format)
	}
	if err := c.Flags.Check(args); err != nil {
		return err
	}
	if m, given := c.CodecMachine(); given {
		c.given = &m
	}
	var err1, err2 error
	pre, post, ok := strings.Cut(cmp.Or(c.captured, "2,1"), ",")
	c.pre, err1 = strconv.Atoi(pre)
	c.post, err2 = strconv.Atoi(post)
	if !ok || err1 != nil || err2 != nil || c.pre < 0 || c.post < 0 || c.pre > 255 || c.post > 255 {
		return fmt.Errorf("--captured %q: expected SNIP_PRE,SNIP_POST, such as 2,1", c.captured)
	}
	if len(args) == 0 {
		return errors.New("expected a FILE, or - for standard input")
	}
	return nil
}

// report runs the command after the flags were checked.
func (c *config) report(cmd *cobra.Command) error {
	r := &reporter{config: c, stdin: cmd.InOrStdin(), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
	return r.reportLogs()
}

// write writes a report in the format of --format.
func (c *config) write(w io.Writer, r *stats.Report) error {
	if c.format != "json" {
		return stats.WriteText(w, r.Sections())
	}
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(out, '\n'))
	return err
}
