package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/server"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/fleet/symbols"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// serve is the state of btfleet serve.
type serve struct {
	store     rowsFlag
	keep      retention
	spool     spoolFlag
	size      cli.Size // of the spool
	listen    string
	tokens    string
	cert, key string
	pair      atomic.Pointer[tls.Certificate] // of cert and key
	clientCA  string
	project   string
	every     time.Duration
	rate      float64
	values    int
	builds    int
	webhook   string
	url       string
	warn      float64
}

func serveCommand() *cobra.Command {
	o := &serve{}
	c := &cobra.Command{Use: "serve [flags]", Short: "receive dumps from devices, and show the page",
		Long: `serve receives dumps:

    curl -T heap.log -H "Authorization: Bearer TOKEN" \
        'http://HOST:8470/v1/dumps/DEVICE?build=BUILD&fw=VERSION'

An upload is a log, or a part of one that ends at the end of a dump, plain or
compressed (Content-Encoding: gzip or zstd). build and fw are for logs whose
~h#boot line does not name them. An upload that is sent again counts once; of a
log that has grown, what is after the last dump of the device is added. The
answer 201 says that the upload is on disk; 429 and 507 have a Retry-After.
/metrics is for Prometheus, and /healthz for a load balancer. An interrupt ends
it after all is written.
SIGHUP makes it read the files of --tokens, --cert and --key again.`,
		Example: "btfleet serve --listen :8470 --tokens tokens --cert tls.pem --key key.pem\nbtfleet serve --store /var/lib/btfleet --listen :8470 --tokens tokens", Args: cobra.NoArgs, RunE: o.run}
	o.store.add(c)
	addFlags(c, "Retention", o.keep.add)
	addFlags(c, "Server", func(f *pflag.FlagSet) {
		f.StringVar(&o.listen, "listen", "127.0.0.1:8470", "`ADDRESS` and port to listen at")
		f.StringVar(&o.tokens, "tokens", "", "`FILE` with the hashes of tokens (btfleet token); needed for addresses other than this machine's")
		f.StringVar(&o.cert, "cert", "", "`FILE` with the certificate chain for TLS, in PEM")
		f.StringVar(&o.key, "key", "", "`FILE` with the key of the certificate")
		f.StringVar(&o.clientCA, "client-ca", "", "`FILE` with the certificates, in PEM, that sign those of devices: a device with one needs no token")
		f.StringVar(&o.project, "project-header", "", "`NAME` of the header by which a proxy says which project its user may see")
		o.spool.add(c, "Server")
		o.size = 4 << 30
		f.Var(&o.size, "spool-size", "refuse uploads when the spool is larger than `SIZE`")
		f.Lookup("spool-size").DefValue = "4G"
		f.DurationVar(&o.every, "write-every", 30*time.Second, "write uploads to the store every `TIME`, earlier if there are many")
		f.Float64Var(&o.rate, "rate", 1, "limit of uploads per second of one device: `N`")
		f.IntVar(&o.values, "values-per-day", server.DefaultLimits.Values, "limit of the values (dumps, their call paths and frames) that one device sends per day: `N`")
		f.IntVar(&o.builds, "builds-per-day", server.DefaultLimits.Builds, "limit of the builds that one device sends per day: `N`")
	})
	addFlags(c, "Alerts", func(f *pflag.FlagSet) {
		f.StringVar(&o.webhook, "webhook", "", "`URL` that gets a POST with JSON when a build has its first leak, and when a heap is exhausted within --warn-days")
		f.Float64Var(&o.warn, "warn-days", 7, "alert if a heap is exhausted within `N` days")
		f.StringVar(&o.url, "url", "", "`URL` of the page, for the links in alerts")
	})
	return c
}

func (o *serve) run(c *cobra.Command, _ []string) error {
	limit := o.keep.limit()
	if err := o.check(); err != nil {
		return err
	}
	tokens, err := o.readTokens()
	if err != nil {
		return err
	}
	if err := o.readPair(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM) // SIGHUP is for reload
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the process
	to, tables, err := o.store.both()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
	spool, err := o.spool.open(to, int64(o.size), log)
	if err != nil {
		return err
	}
	defer spool.Close()
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return cli.Failedf("--listen %s: %v", o.listen, err)
	}
	listener = netutil.LimitListener(listener, server.DefaultLimits.Connections)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := server.NewMetrics(registry, spool)
	db, err := o.store.openDB(ctx, to, tables)
	if err != nil {
		return err
	}
	defer db.Close()
	handler := page.New(db, log)
	s := &server.Server{Spool: spool, Tokens: tokens, Project: o.project, Limits: server.DefaultLimits, Log: log, Metrics: metrics, Pages: handler}
	s.Limits.Rate, s.Limits.Values, s.Limits.Builds = rate.Limit(o.rate), o.values, o.builds
	alerts := &watch{store: to, db: db, pages: handler, log: log, url: o.webhook, page: o.url, days: o.warn}
	w := newWriter(spool, to, tables, metrics, log)
	s.Writer = w
	if tables != nil {
		if err := tables.Check(ctx); err != nil {
			log.Error("uploads wait in the spool", "err", err)
		}
	}
	b := background{writer: w, files: to, tables: tables, alerts: alerts, limit: limit}
	return o.serve(ctx, listener, s, &b, registry)
}

// newWriter returns what writes a spool to a store, or to tables that are not nil.
func newWriter(spool *server.Spool, files *store.Store, tables *clickhouse.Store, metrics *server.Metrics, log *slog.Logger) *server.Writer {
	w := &server.Writer{Spool: spool, Store: files, DeleteDevice: files.DeleteDevice, Log: log, Metrics: metrics, MaxUploads: 2000, MaxFacts: 1 << 20}
	if tables != nil {
		w.Store, w.DeleteDevice = tables, tables.DeleteDevice
	}
	return w
}

// check checks flags.
func (o *serve) check() error {
	for _, c := range []struct {
		wrong bool
		text  string
	}{
		{o.webhook != "" && !isHTTP(o.webhook), "--webhook: expected a URL such as https://example.com/hook"},
		{!(o.rate > 0) || o.values < 1 || o.builds < 1 || o.every <= 0, "--rate, --values-per-day, --builds-per-day and --write-every: expected more than 0"},
		{(o.cert == "") != (o.key == ""), "--cert and --key belong together"},
		{o.clientCA != "" && (o.cert == "" || o.tokens == ""), "--client-ca needs --cert, and --tokens for those who read"},
		{o.project != "" && o.tokens == "", "--project-header needs --tokens for those who read"},
		{o.url != "" && !isHTTP(o.url), "--url: expected a URL such as https://fleet.example.com"},
		{o.store.clickhouse != "" && (o.keep.days > 0 || o.keep.size > 0 || o.keep.labels != nil),
			"--keep-days, --keep-size and --keep-label are for Parquet files: the tables of ClickHouse have a limit of their own (btfleet clickhouse schema --keep-days)"},
	} {
		if c.wrong {
			return cli.Usagef("%s", c.text)
		}
	}
	return nil
}

// pool reads certificates in PEM.
func pool(flag, file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, cli.Usagef("%s: %w", flag, err)
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(text) {
		return nil, cli.Usagef("%s %s: expected certificates in PEM", flag, file)
	}
	return p, nil
}

// readTokens reads the file of --tokens. Without the flag, it rejects addresses that other machines can reach.
func (o *serve) readTokens() (*server.Tokens, error) {
	if o.tokens == "" {
		if !loopback(o.listen) {
			return nil, cli.Usagef("--listen %s: other machines can connect, so --tokens is needed (btfleet token)", o.listen)
		}
		return nil, nil
	}
	f, err := os.Open(o.tokens)
	if err != nil {
		return nil, cli.Usagef("--tokens: %w", err)
	}
	defer f.Close()
	t, err := server.ReadTokens(f, o.tokens)
	if err != nil {
		return nil, cli.Usagef("--tokens: %w", err)
	}
	return t, nil
}

// readPair reads the files of --cert and --key.
func (o *serve) readPair() error {
	if o.cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return cli.Usagef("--cert %s --key %s: %w", o.cert, o.key, err)
	}
	o.pair.Store(&pair)
	return nil
}

// reload reads the tokens and the certificate again at each SIGHUP. Those that cannot be read stay.
func (o *serve) reload(ctx context.Context, t *server.Tokens, log *slog.Logger) {
	if t == nil && o.cert == "" {
		return // SIGHUP ends the server, as when a terminal is closed
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
		}
		list, err := o.readTokens()
		if err != nil {
			log.Error("the tokens stay as they were", "err", err)
		} else if t != nil {
			t.Replace(list)
			log.Info("tokens read", "file", o.tokens)
		}
		if err := o.readPair(); err != nil {
			log.Error("the certificate stays as it was", "err", err)
		}
	}
}

// loopback reports whether only this machine can connect to an address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// background holds the tasks of a server besides requests.
type background struct {
	writer *server.Writer
	files  *store.Store
	tables *clickhouse.Store // nil for Parquet files
	alerts *watch
	limit  store.Retention
}

// serve runs until ctx is done. It then stops listening, answers the requests in progress, and
// writes all waiting uploads.
func (o *serve) serve(ctx context.Context, l net.Listener, s *server.Server, b *background, registry *prometheus.Registry) error {
	var work sync.WaitGroup
	work.Go(func() { b.writer.Run(ctx, o.every) })
	work.Go(func() { o.reload(ctx, s.Tokens, s.Log) })
	if b.tables == nil {
		work.Go(func() {
			every(ctx, time.Hour, func() error {
				deleted, err := maintain(ctx, b.files, b.alerts.db.Damaged(), b.limit)
				if len(deleted) > 0 {
					s.Log.Info("deleted", "days", deleted)
				}
				return err
			}, s.Log)
		})
	}
	work.Go(func() {
		every(ctx, time.Minute, func() error {
			_, err := symbols.Update(ctx, b.files, b.alerts.db)
			return err
		}, s.Log)
	})
	work.Go(func() { every(ctx, o.every, func() error { return b.alerts.pages.Refresh(ctx) }, s.Log) })
	if o.webhook != "" {
		work.Go(func() { every(ctx, time.Hour, func() error { return b.alerts.pass(ctx) }, s.Log) })
	}
	h := server.HTTPServer(s.Handler(registry), s.Log)
	if o.clientCA != "" {
		ca, err := pool("--client-ca", o.clientCA)
		if err != nil {
			return err
		}
		h.TLSConfig.ClientCAs, h.TLSConfig.ClientAuth = ca, tls.VerifyClientCertIfGiven
	}
	listen := h.Serve
	if o.cert != "" {
		h.TLSConfig.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return o.pair.Load(), nil }
		listen = func(l net.Listener) error { return h.ServeTLS(l, "", "") }
	}
	s.Log.Info("listening", "address", l.Addr().String(), "tls", o.cert != "")
	last, cancel, err := until(ctx, h, l, listen)
	defer cancel()
	if err != nil {
		return err
	}
	work.Wait()
	if err := b.writer.Flush(last); err != nil {
		return cli.Failedf("uploads stay in the spool: %w", err)
	}
	return nil
}

// isHTTP reports whether s is a URL of HTTP or HTTPS.
func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// until listens until ctx is done, and then answers the requests in progress. It returns a context for what is left
// to do after that.
func until(ctx context.Context, h *http.Server, l net.Listener, listen func(net.Listener) error) (last context.Context, cancel context.CancelFunc, err error) {
	failed := make(chan error, 1)
	go func() { failed <- listen(l) }()
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = cli.Failedf("%w", err)
	}
	last, cancel = context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	h.Shutdown(last)
	return last, cancel, err
}

// every calls do at once, and then once per interval until ctx is done, but never for more than a tenth of the time. It logs errors.
func every(ctx context.Context, interval time.Duration, do func() error, log *slog.Logger) {
	for ctx.Err() == nil {
		begin := time.Now()
		if err := do(); err != nil && ctx.Err() == nil {
			log.Error("in the background", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(interval, 9*time.Since(begin))):
		}
	}
}
