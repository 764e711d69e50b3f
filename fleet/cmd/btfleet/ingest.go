package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/server"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/input"
)

// ingestOptions is the state of btfleet ingest.
type ingestOptions struct {
	store             rowsFlag
	spool             spoolFlag
	device, build, fw string
	labels            labelFlag
}

func ingestCommand() *cobra.Command {
	o := &ingestOptions{}
	c := &cobra.Command{Use: "ingest [flags] FILE...", Short: "put logs into a store, without a server",
		Long: `ingest puts logs into a store: files, plain or compressed by gzip, zstd or xz,
the files below directories, or standard input (-). The device is the one that
a log's ~h#boot line names, else that of --device, else the name of the file
without its extensions. Each file is one upload: put in again, it counts once.
If it has grown, only the dumps after the last dump of the device are added.
While btfleet serve uses the spool, send it the logs (curl -T).`,
		Example: "btfleet ingest --store fleet --build 5ca1ab1e logs/\nssh router logread | btfleet ingest --store fleet --device router-1 -",
		Args:    cobra.MinimumNArgs(1), RunE: o.run}
	o.store.add(c)
	o.spool.add(c, "Store")
	addFlags(c, "Identity", func(f *pflag.FlagSet) {
		f.StringVar(&o.device, "device", "", "`NAME` of the device")
		f.StringVar(&o.build, "build", "", "build `ID` of logs that do not name theirs")
		f.StringVar(&o.fw, "fw", "", "`VERSION` of the firmware of logs that do not name it")
		f.Var(&o.labels, "label", "label `NAME=VALUE` of the devices, such as model=x2; several times for several labels")
	})
	return c
}

func (o *ingestOptions) run(c *cobra.Command, args []string) error {
	files, err := regular(args)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if len(files) == 0 {
		return cli.Usagef("no file in %s", strings.Join(args, ", "))
	}
	spool, w, err := o.open(c)
	if err != nil {
		return err
	}
	defer spool.Close()
	failed, dumps, devices := 0, 0, map[string]bool{}
	for _, name := range files {
		u, err := o.upload(c, name)
		var res ingest.Result
		again := false
		if err == nil {
			res, again, err = spool.Put(c.Context(), u, ingest.DefaultLimits, func(*ingest.Result, time.Duration) error { return nil })
		}
		switch {
		case err != nil:
			fmt.Fprintf(c.ErrOrStderr(), "btfleet: %s: %v\n", cli.Printable(name), err)
			failed++
		case again:
			fmt.Fprintf(c.ErrOrStderr(), "%s: in the store already\n", cli.Printable(name))
		default:
			devices[u.Device], dumps = true, dumps+res.New
		}
		if spool.Size() > 64<<20 {
			if err := w.Flush(c.Context()); err != nil {
				return cli.Failedf("%w", err)
			}
		}
	}
	if err := w.Flush(c.Context()); err != nil {
		return cli.Failedf("%w", err)
	}
	fmt.Fprintf(c.OutOrStdout(), "%s of %s, %d refused\n", cli.Count(dumps, "dump"), cli.Count(len(devices), "device"), failed)
	if failed > 0 {
		return cli.Exit(cli.Short)
	}
	return nil
}

// open opens the spool, and what writes it to the store: logs go the way of those that a server receives.
func (o *ingestOptions) open(c *cobra.Command) (*server.Spool, *server.Writer, error) {
	files, tables, err := o.store.both()
	if err != nil {
		return nil, nil, err
	}
	log := slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	spool, err := o.spool.open(files, math.MaxInt64, log)
	if err != nil {
		return nil, nil, err
	}
	w := newWriter(spool, files, tables, server.NewMetrics(prometheus.NewRegistry(), spool), log)
	if tables != nil {
		if err := tables.Check(c.Context()); err != nil {
			spool.Close()
			return nil, nil, cli.Failedf("%w", err)
		}
	}
	return spool, w, nil
}

// upload reads a file.
func (o *ingestOptions) upload(c *cobra.Command, name string) (*ingest.Upload, error) {
	in := c.InOrStdin()
	if name != cli.Stdio {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	u := &ingest.Upload{Device: o.device, Build: o.build, FW: o.fw, Labels: o.labels.Labels, Received: time.Now()}
	base := filepath.Base(name)
	text, err := input.FromReader(in, name).Open(&input.Hooks{Ctx: c.Context()})
	if err != nil {
		return nil, err
	}
	defer text.Close()
	if text.Compression != "" {
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	const most = 1 << 30
	if u.Text, err = io.ReadAll(io.LimitReader(text, most+1)); err != nil {
		return nil, errors.New(input.Reason("", err))
	}
	if len(u.Text) > most {
		return nil, errors.New("larger than 1 GiB")
	}
	if u.Device == "" {
		u.Device = ingest.DeviceOf(u.Text)
	}
	if u.Device == "" && name != cli.Stdio {
		u.Device = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if u.Device == "" {
		return nil, errors.New("the log does not name its device: --device is needed")
	}
	return u, nil
}

// regular returns the files in the arguments, and all files below the directories in them.
func regular(args []string) (files []string, err error) {
	for _, a := range args {
		if a == cli.Stdio {
			files = append(files, a)
			continue
		}
		err := filepath.WalkDir(a, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
