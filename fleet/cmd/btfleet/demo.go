package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/fleet/server"
	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// demo is the state of btfleet demo.
type demo struct {
	listen  string
	devices int
	once    bool
}

func demoCommand() *cobra.Command {
	o := &demo{}
	c := &cobra.Command{Use: "demo [flags]", Short: "show the page with a simulated fleet",
		Long: `demo simulates a fleet of five builds in a temporary directory, one of which
leaks 200 bytes per hour on a twentieth of its devices, and shows its page
until an interrupt.`,
		Example: "btfleet demo", Args: cobra.NoArgs, RunE: o.run}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&o.listen, "listen", "127.0.0.1:8470", "`ADDRESS` and port to listen at, of this machine")
	f.IntVar(&o.devices, "devices", 10_000, "simulate `N` devices")
	f.BoolVar(&o.once, "once", false, "end after the fleet was simulated and the leak found")
	cli.AddFlags(c, "Demo", f)
	return c
}

func (o *demo) run(c *cobra.Command, _ []string) error {
	if !loopback(o.listen) {
		return cli.Usagef("--listen %s: expected an address of this machine, such as 127.0.0.1:8470", o.listen)
	}
	ctx, stop := cli.Interruptible(c.Context())
	defer stop()
	dir, err := os.MkdirTemp("", "btfleet-demo-")
	if err != nil {
		return cli.Failedf("%v", err)
	}
	defer os.RemoveAll(dir)
	s, err := store.Open(ctx, filepath.Join(dir, "store"))
	if err != nil {
		return cli.Failedf("%v", err)
	}
	defer s.Close()
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return cli.Failedf("%v", err)
	}
	defer l.Close()
	fleet := simulate.Default()
	fleet.Devices, fleet.Days = o.devices, 7
	fleet.Start = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -fleet.Days)
	out := c.OutOrStdout()
	fmt.Fprintf(out, "simulating %s devices for %d days\n", cli.Number(int64(o.devices)), fleet.Days)
	begin := time.Now()
	dumps, facts, err := fleet.Store(ctx, s)
	if err != nil {
		return cli.Usagef("--devices: %v", err)
	}
	if err := nameFrames(ctx, s); err != nil {
		return cli.Failedf("%v", err)
	}
	fmt.Fprintf(out, "%s dumps, %s facts in %.0f s\n", cli.Number(int64(dumps)), cli.Number(int64(facts)), time.Since(begin).Seconds())
	log := slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	handler, db, err := pages(ctx, s, log)
	if err != nil {
		return cli.Failedf("%v", err)
	}
	defer db.Close()
	if o.once {
		return nil
	}
	fmt.Fprintf(out, "http://%s/build/%s shows the leak; an interrupt ends the demo\n", l.Addr(), fleet.BuildID(fleet.Leak.Build))
	fmt.Fprintf(out, "your own fleet: btfleet serve --store fleet, then curl -T heap.log http://%s/v1/dumps/DEVICE\n", o.listen)
	h := server.HTTPServer(server.Local(handler), log)
	go func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		h.Shutdown(last)
	}()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return cli.Failedf("%v", err)
	}
	return nil
}

// Parts of the names of simulated functions.
var (
	demoParts = []string{"mqtt", "tls", "http", "sensor", "config", "log", "ota", "json", "wifi", "queue", "event", "flash", "timer", "cert", "shell"}
	demoVerbs = []string{"open", "read", "parse", "publish", "receive", "update", "append", "dispatch", "connect", "resume", "copy", "poll"}
)

// nameFrames assigns function names to the addresses of a simulated fleet.
func nameFrames(ctx context.Context, s *store.Store) error {
	builds, err := s.Builds(ctx)
	if err != nil {
		return err
	}
	for _, b := range builds {
		list, err := s.Snapshot(ctx, "", b)
		if err != nil {
			return err
		}
		rows, err := store.Read[store.Path](ctx, s, list.Paths[0])
		if err != nil {
			return err
		}
		var frames []store.Frame
		seen := map[string]bool{}
		for _, r := range rows {
			for _, a := range r.Addresses {
				if seen[a] {
					continue
				}
				seen[a] = true
				h := fnv.New32a()
				h.Write([]byte(a))
				v := h.Sum32()
				part := demoParts[v%uint32(len(demoParts))]
				name := fmt.Sprintf("%s_%s", part, demoVerbs[v/32%uint32(len(demoVerbs))])
				frames = append(frames, store.Frame{Build: b, Address: a, Function: name, File: part + ".c", Line: int32(v/1024%900 + 10)})
			}
		}
		if err := s.PutFrames(ctx, b, time.Now(), frames); err != nil {
			return err
		}
	}
	return nil
}
