package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/server"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// storeFlag is the flag --store of commands that need a store.
type storeFlag struct{ where string }

func (f *storeFlag) add(c *cobra.Command) {
	addFlags(c, "Store", func(flags *pflag.FlagSet) { flags.StringVar(&f.where, "store", "fleet", "the `DIR` of the store") })
}

// open opens the store. A directory must exist unless create is set.
func (f *storeFlag) open(create bool) (*store.Store, error) {
	if !create {
		if info, err := os.Stat(f.where); errors.Is(err, fs.ErrNotExist) {
			return nil, cli.Usagef("--store %s: no such directory; btfleet serve or ingest makes it", f.where)
		} else if err == nil && !info.IsDir() {
			return nil, cli.Usagef("--store %s: not a directory", f.where)
		}
	}
	s, err := store.Open(f.where)
	if err != nil {
		return nil, cli.Usagef("--%w", err)
	}
	return s, nil
}

// spoolFlag is the flag --spool of commands that receive dumps.
type spoolFlag struct{ where string }

func (f *spoolFlag) add(c *cobra.Command, group string) {
	addFlags(c, group, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.where, "spool", "", "`DIR` for uploads that are not in the store yet, on a local disk, or that of the store with .spool after its name")
	})
}

// open opens the spool, which may have size bytes.
func (f *spoolFlag) open(of *store.Store, size int64, log *slog.Logger) (*server.Spool, error) {
	s, err := server.OpenSpool(cmp.Or(f.where, of.Dir()+".spool"), size, log)
	if err != nil {
		return nil, cli.Failedf("%w", err)
	}
	return s, nil
}

// retention holds the flags that limit the age and the size of a store.
type retention struct {
	days   cli.Natural
	size   cli.Size
	labels map[string]time.Duration
}

func (r *retention) add(f *pflag.FlagSet) {
	addDays(f, &r.days)
	f.Var(&r.size, "keep-size", "delete the oldest days if the store is larger than `SIZE`, such as 200G")
	f.Func("keep-label", "delete dumps with a label that are older than some days: `NAME=VALUE:N`", func(text string) error {
		at := max(0, strings.LastIndexByte(text, ':'))
		label, days := text[:at], strings.TrimPrefix(text[at:], ":")
		var n cli.Natural
		if err := errors.Join(new(store.Labels).Set(label), n.Set(days)); err != nil || n > 100_000 {
			return errors.New("expected a label and a number of days, such as cohort=beta:30")
		}
		if r.labels == nil {
			r.labels = map[string]time.Duration{}
		}
		r.labels[label] = time.Duration(n) * 24 * time.Hour
		return nil
	})
}

// addDays adds the flag --keep-days.
func addDays(f *pflag.FlagSet, days *cli.Natural) {
	f.Var(days, "keep-days", "delete what is older than `N` days; 0 keeps all")
	f.Lookup("keep-days").DefValue = ""
}

// limit returns the limits of a store.
func (r *retention) limit() store.Retention {
	return store.Retention{Age: time.Duration(min(r.days, 100_000)) * 24 * time.Hour, Size: int64(r.size), Labels: r.labels}
}

func compactCommand() *cobra.Command {
	var from storeFlag
	var keep retention
	c := &cobra.Command{Use: "compact [flags]", Short: "merge the files of a store, delete old ones",
		Long: `compact merges the small files that servers write into few for each day, and
deletes what exceeds --keep-days and --keep-size. btfleet serve does the same
every hour. A file that is damaged is moved to the directory quarantine.`,
		Example: "btfleet compact --store fleet --keep-days 90", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := from.open(false)
			if err != nil {
				return err
			}
			deleted, err := maintain(c.Context(), s, nil, keep.limit())
			for _, day := range deleted {
				fmt.Fprintf(c.ErrOrStderr(), "deleted %s\n", day)
			}
			if _, damaged := errors.AsType[*store.Damaged](err); damaged {
				return cli.Shortf("%w; it is in the directory quarantine of the store", err)
			} else if err != nil {
				return cli.Failedf("%w", err)
			}
			return nil
		}}
	from.add(c)
	addFlags(c, "Retention", keep.add)
	return c
}

// grace is the time for which replaced files are kept after a compaction, because readers may
// still read them.
const grace = 15 * time.Minute

// maintain moves damaged files to quarantine, compacts a store, and deletes days that exceed the limits.
func maintain(ctx context.Context, s *store.Store, damaged []string, limit store.Retention) (deleted []string, err error) {
	var failed []error
	for _, name := range damaged {
		failed = append(failed, s.Quarantine(ctx, name))
	}
	failed = append(failed, s.Compact(ctx, grace))
	deleted, err = s.Retain(ctx, limit, time.Now())
	return deleted, errors.Join(append(failed, err)...)
}

func tokenCommand() *cobra.Command {
	return &cobra.Command{Use: "token {device NAME | fleet | read | delete} [LABEL...]", Short: "make a token for a client of btfleet serve",
		Long: `token prints a random token on standard error, for the client, and the line for
the file of --tokens on standard output: the file has only hashes. Dumps that
come with a token have its labels; a client that reads sees only such dumps.`,
		Example: "btfleet token device sensor-7 >>tokens\nbtfleet token read project=a >>tokens", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			token, hash := server.NewToken()
			at := min(len(args), 1) // of the hash
			if at > 0 && args[0] == "device" {
				at = min(len(args), 2)
			}
			line := strings.Join(slices.Insert(args, at, hash), " ")
			if _, err := server.ReadTokens(strings.NewReader(line), "token"); err != nil {
				return cli.BadArgsf("expected device NAME, fleet, read or delete, and labels such as project=a")
			}
			fmt.Fprintln(c.ErrOrStderr(), token)
			fmt.Fprintln(c.OutOrStdout(), line)
			return nil
		}}
}
