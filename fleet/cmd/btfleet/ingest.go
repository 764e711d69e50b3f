package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/input"
)

// ingestOptions is the state of btfleet ingest.
type ingestOptions struct {
	store             rowsFlag
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
If it has grown, only the dumps after the last dump of the device are added.`,
		Example: "btfleet ingest --store fleet --build 5ca1ab1e logs/\nssh router logread | btfleet ingest --store fleet --device router-1 -",
		Args:    cobra.MinimumNArgs(1), RunE: o.run}
	o.store.add(c)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&o.device, "device", "", "`NAME` of the device")
	f.StringVar(&o.build, "build", "", "build `ID` of logs that do not name theirs")
	f.StringVar(&o.fw, "fw", "", "`VERSION` of the firmware of logs that do not name it")
	f.Var(&o.labels, "label", "label `NAME=VALUE` of the devices, such as model=x2; several times for several labels")
	cli.AddFlags(c, "Identity", f)
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
	s, known, last, err := o.open(c.Context())
	if err != nil {
		return err
	}
	b := &store.Batch{Day: time.Now()}
	failed, dumps, first := 0, 0, ""
	states := map[string]ingest.State{}
	for i, name := range files {
		u, err := o.upload(c, name)
		if err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "btfleet: %s: %v\n", cli.Printable(name), err)
			failed++
			continue
		}
		// Times must differ between files, because they order the boots.
		u.Received = b.Day.Add(time.Duration(i) * time.Microsecond)
		upload := [2]string{u.Device, u.Sum()}
		if known[upload] {
			fmt.Fprintf(c.ErrOrStderr(), "%s: in the store already\n", cli.Printable(name))
			continue
		}
		known[upload] = true
		state, ok := states[u.Device]
		if !ok {
			d := last[u.Device]
			state.Last = ingest.LastOf(&d)
		}
		res, err := u.Read(c.Context(), &state, ingest.DefaultLimits, func(d *ingest.Dump) error { d.Append(b); return nil })
		if err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "btfleet: %s: %v\n", cli.Printable(name), err)
			failed++
			continue
		}
		states[u.Device] = state
		if dumps += res.New; first == "" {
			first = u.Sum()
		}
		if len(b.Facts) > 1<<20 {
			if err := flush(c, s, b, first); err != nil {
				return err
			}
			first = ""
		}
	}
	if err := flush(c, s, b, first); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "%s of %s, %d refused\n", cli.Count(dumps, "dump"), cli.Count(len(states), "device"), failed)
	if failed > 0 {
		return cli.Exit(cli.Short)
	}
	return nil
}

// open opens the rows. It returns the uploads, by device and sum, and the last dump of each device.
func (o *ingestOptions) open(ctx context.Context) (to store.Putter, known map[[2]string]bool, last map[string]store.Dump, err error) {
	t, err := o.store.tables()
	if err != nil {
		return nil, nil, nil, err
	}
	var files *store.Store
	if to = t; t == nil {
		if files, err = o.store.open(true); err != nil {
			return nil, nil, nil, err
		}
		to = files
	}
	db, err := o.store.openDB(ctx, files, t)
	if err != nil {
		return nil, nil, nil, err
	}
	defer db.Close()
	if known, last, err = db.Uploads(ctx, query.Scope{Device: o.device}); err != nil {
		return nil, nil, nil, cli.Failedf("%v", err)
	}
	return to, known, last, nil
}

// flush writes a batch, if it has rows, and empties it.
func flush(c *cobra.Command, s store.Putter, b *store.Batch, first string) error {
	if len(b.Dumps) == 0 {
		return nil
	}
	b.Name = fmt.Sprintf("%020d-%s", b.Day.UnixNano(), first)
	if err := s.Put(c.Context(), b); err != nil {
		return cli.Failedf("%w", err)
	}
	*b = store.Batch{Day: b.Day}
	return nil
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
	u := &ingest.Upload{Device: o.device, Build: o.build, FW: o.fw, Labels: o.labels.Labels}
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
