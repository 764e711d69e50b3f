package main

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/server"
	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// demo is the state of btfleet demo.
type demo struct {
	listen  string
	store   string
	devices int
	share   float64
	paths   int
}

func demoCommand() *cobra.Command {
	o := &demo{}
	c := &cobra.Command{Use: "demo [flags]", Short: "show the page with a simulated fleet",
		Long: `demo simulates a fleet of five builds for seven days, of which 1.4.3 leaks 200
bytes per hour on some devices, and shows its page until an interrupt. With
--store it writes the fleet into an empty store instead, as of June 2026: the
same flags write the same dumps.`,
		Example: "btfleet demo\nbtfleet demo --store sim --devices 10000", Args: cobra.NoArgs, RunE: o.run}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&o.listen, "listen", "127.0.0.1:8470", "`ADDRESS` and port to listen at, of this machine")
	f.StringVar(&o.store, "store", "", "write into an empty store, a `DIR` or a bucket")
	f.IntVar(&o.devices, "devices", 2_000, "simulate `N` devices")
	f.IntVar(&o.paths, "paths", 150, "`N` call paths")
	f.Float64Var(&o.share, "leak-share", 0.05, "`FRACTION` of the devices of 1.4.3 that leak")
	cli.AddFlags(c, "Demo", f)
	return c
}

func (o *demo) run(c *cobra.Command, _ []string) error {
	if !loopback(o.listen) {
		return cli.Usagef("--listen %s: expected an address of this machine, such as 127.0.0.1:8470", o.listen)
	}
	fleet := simulate.Default()
	fleet.Devices, fleet.Paths, fleet.Leak.Share = o.devices, o.paths, o.share
	if err := fleet.Check(); err != nil {
		return cli.Usagef("%w", err)
	}
	ctx, stop := cli.Interruptible(c.Context())
	defer stop()
	if o.store != "" {
		return o.write(ctx, c.OutOrStdout(), &fleet)
	}
	dir, err := os.MkdirTemp("", "btfleet-demo-")
	if err != nil {
		return cli.Failedf("%w", err)
	}
	defer os.RemoveAll(dir)
	s, err := store.Open(ctx, filepath.Join(dir, "store"))
	if err != nil {
		return cli.Failedf("%w", err)
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return cli.Failedf("--listen %s: %v", o.listen, err)
	}
	defer l.Close()
	fleet.Start = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -fleet.Days)
	out := c.OutOrStdout()
	fmt.Fprintf(out, "simulating %s devices for %d days, in %s\n", cli.Number(int64(o.devices)), fleet.Days, dir)
	begin := time.Now()
	dumps, facts, err := fleet.Store(ctx, s)
	if err != nil {
		return cli.Failedf("%w", err)
	}
	fmt.Fprintf(out, "%s dumps, %s facts in %.0f s\n", cli.Number(int64(dumps)), cli.Number(int64(facts)), time.Since(begin).Seconds())
	log := slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	db, err := query.Open(ctx, s)
	if err != nil {
		return cli.Failedf("%w", err)
	}
	defer db.Close()
	if err := nameFrames(ctx, s, db); err != nil {
		return cli.Failedf("%w", err)
	}
	handler := page.New(db, log)
	fmt.Fprintln(out, "examining the builds")
	if err := handler.Refresh(ctx); err != nil {
		return cli.Failedf("%w", err)
	}
	fmt.Fprintf(out, "\nhttp://%s/\nshows that version %s leaks. An interrupt ends the demo.\n%s", l.Addr(), fleet.Firmware(fleet.Leak.Build), nextStep)
	h := server.HTTPServer(server.Local(handler), log)
	_, cancel, err := until(ctx, h, l, h.Serve)
	cancel()
	return err
}

// write writes a fleet into an empty store.
func (o *demo) write(ctx context.Context, out io.Writer, fleet *simulate.Fleet) error {
	s, err := (&storeFlag{o.store}).open(ctx, true)
	if err != nil {
		return err
	}
	if list, err := s.Snapshot(ctx, ""); err != nil || len(list[store.Dumps]) > 0 {
		return cmp.Or(err, cli.Usagef("--store %s: it has dumps, expected an empty store", o.store))
	}
	dumps, facts, err := fleet.Store(ctx, s)
	if err != nil {
		return cli.Failedf("%w", err)
	}
	fmt.Fprintf(out, "%s of %s, %s\n", cli.Count(int64(dumps), "dump"), cli.Count(int64(fleet.Devices), "device"), cli.Count(int64(facts), "fact"))
	return nil
}

// nextStep tells what to do after the demo.
const nextStep = `
Your own fleet, from the log of one device:
    btfleet serve --store fleet
    curl -T heap.log 'http://127.0.0.1:8470/v1/dumps/DEVICE?build=BUILD&fw=VERSION'
    btfleet symbols add --store fleet firmware.elf
`

// Parts of the names of simulated functions.
var (
	demoParts = []string{"mqtt", "tls", "http", "sensor", "config", "log", "ota", "json", "wifi", "queue", "event", "flash", "timer", "cert", "shell"}
	demoVerbs = []string{"open", "read", "parse", "publish", "receive", "update", "append", "dispatch", "connect", "resume", "copy", "poll"}
)

// nameFrames assigns function names to the addresses of a simulated fleet.
func nameFrames(ctx context.Context, s *store.Store, db *query.DB) error {
	res, err := db.Query(ctx, "select distinct build, unnest(addresses) from paths", query.Scope{}, 1<<20)
	if err != nil {
		return err
	}
	var frames []store.Frame
	for _, row := range res.Rows {
		build, address := row[0].(string), row[1].(string)
		h := fnv.New32a()
		h.Write([]byte(address))
		v := h.Sum32()
		part := demoParts[v%uint32(len(demoParts))]
		name := part + "_" + demoVerbs[v/32%uint32(len(demoVerbs))]
		frames = append(frames, store.Frame{Build: build, Address: address, Function: name, File: part + ".c", Line: int32(v/1024%900 + 10)})
	}
	return s.PutFrames(ctx, time.Now(), frames)
}
