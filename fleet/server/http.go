package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/time/rate"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/decompress"
)

// Limits limits the resources for one upload, one device and the server.
type Limits struct {
	Body  int64 // bytes of an upload as sent
	Text  int64 // bytes of an upload, decompressed
	Rate  rate.Limit
	Burst int // each device may send Rate uploads per second, and Burst at once: as many as wait while it has no network
	// Values (dumps, their call paths and frames) and Builds are per device and day. A second of reading
	// costs Second values: some logs take long to read, and have few.
	Values, Builds, Second int
	Uploads                int // uploads read at the same time; see shares
	// Receive is the time in which the body of an upload must arrive, and Receiving the bytes that all bodies have that
	// are arriving, or wait to be read; see shares.
	Receive     time.Duration
	Receiving   int64
	Connections int
	Ingest      ingest.Limits
}

// DefaultLimits bound the memory of a server (SECURITY.md).
var DefaultLimits = Limits{Body: 4 << 20, Text: 16 << 20, Rate: 1, Burst: 1000, Values: 50_000_000, Builds: 20, Second: 100_000,
	Uploads: 8, Receive: time.Minute, Receiving: 64 << 20, Connections: 4096, Ingest: ingest.DefaultLimits}

// Server receives dumps.
type Server struct {
	Spool   *Spool
	Tokens  *Tokens // nil: no token is needed
	Limits  Limits
	Log     *slog.Logger
	Metrics *Metrics
	// Project, if not "", is the header by which a proxy with a read token names the project of its user: the label project of the
	// dumps that the user sees, or * for all.
	Project string
	// Pages, if not nil, serves requests that are not uploads. They need a read token.
	Pages http.Handler
	// Writer writes the spool to the store.
	Writer *Writer

	full   atomic.Int64 // Unix time of the last upload for which the disk had no space
	mu     sync.Mutex
	known  *simplelru.LRU[string, *quota]
	builds *simplelru.LRU[uint64, struct{}] // hashes of builds that devices sent
}

// Handler returns the handler of all requests.
func (s *Server) Handler(metrics prometheus.Gatherer) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("/v1/dumps/{device}", s.put)
	m.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if s.Spool.Size() >= s.Spool.limit || time.Now().Unix() < s.full.Load()+60 {
			http.Error(w, "the spool, or its disk, is full", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
		if since := s.Spool.failing.Load(); since != nil {
			fmt.Fprintf(w, "the store cannot be written since %s; %d bytes wait\n", since.UTC().Format(time.RFC3339), s.Spool.Size())
		}
		if n, err := s.Spool.Bad(); n > 0 || err != nil {
			fmt.Fprintf(w, "files in the directory bad of the spool, which could not be read: %d\n", n)
		}
	})
	all := promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})
	m.Handle("GET /metrics", s.read(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(store.LabelsOf(r.Context())) > 0 {
			fail(w, r, http.StatusForbidden, "a read token without labels is needed")
			return
		}
		all.ServeHTTP(w, r)
	})))
	m.HandleFunc("DELETE /v1/devices/{device}", s.remove)
	if s.Pages != nil {
		m.Handle("/", s.read(s.Pages))
	}
	if s.Tokens == nil {
		return local(m)
	}
	return m
}

// local returns a handler that passes requests to this machine's own names to h. A server without
// tokens listens at them only, but a page of another site can have a name that leads to them.
func local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if host != "localhost" && !strings.HasSuffix(host, ".localhost") && (ip == nil || !ip.IsLoopback()) {
			fail(w, r, http.StatusMisdirectedRequest, "the host is not a name of this machine, such as localhost")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// read returns a handler that passes requests with a read token to h.
func (s *Server) read(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			fail(w, r, http.StatusMethodNotAllowed, r.Method+": expected GET")
			return
		}
		if text, err := url.QueryUnescape(r.URL.RequestURI()); err != nil || !utf8.ValidString(text) {
			fail(w, r, http.StatusBadRequest, "the URL is not UTF-8")
			return
		}
		of, ok := s.Tokens.may(tokenOf(r), "read", "")
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="btfleet", charset="UTF-8"`)
			fail(w, r, http.StatusUnauthorized, "a read token is needed, as the password")
			return
		}
		labels, err := s.project(r)
		if err != nil {
			fail(w, r, http.StatusForbidden, err.Error())
			return
		}
		h.ServeHTTP(w, r.WithContext(store.WithLabels(r.Context(), labels.With(of.labels)))) // those of the token have precedence
	})
}

// project returns the label of the project that a proxy names.
func (s *Server) project(r *http.Request) (l store.Labels, err error) {
	list := r.Header.Values(s.Project)
	switch {
	case s.Project == "" || len(list) == 1 && list[0] == "*":
		return nil, nil
	case len(list) != 1 || l.Set("project="+list[0]) != nil:
		return nil, fmt.Errorf("expected the header %s once, with a project or *", s.Project)
	}
	return l, nil
}

// remove handles DELETE /v1/devices/{device}: it deletes the device from the spool and the store.
func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	device := r.PathValue("device")
	if _, ok := s.Tokens.may(tokenOf(r), "delete", ""); !ok {
		fail(w, r, http.StatusUnauthorized, "a token of a line \"delete HASH\" is needed")
		return
	}
	if err := ingest.CheckDevice(device); err != nil {
		fail(w, r, http.StatusBadRequest, err.Error())
		return
	}
	if err := s.Writer.Delete(context.WithoutCancel(r.Context()), device); err != nil {
		s.Log.Error("a device could not be deleted", "err", err)
		w.Header().Set("Retry-After", "60")
		fail(w, r, http.StatusServiceUnavailable, "not deleted, or not everywhere: try again")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// fail answers with an error, in JSON below /v1.
func fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		reply(w, status, map[string]any{"error": text})
		return
	}
	http.Error(w, text, status)
}

// refusal is an error with the status that a client gets.
type refusal struct {
	status int
	result string // label of Metrics.Uploads
	err    error
	after  int // seconds after which the client should try again, 0 for never
}

func (r *refusal) Error() string { return r.err.Error() }

func refuse(status int, result string, err error) *refusal {
	return &refusal{status: status, result: result, err: err}
}

// put handles PUT /v1/dumps/{device}?build=BUILD&fw=VERSION&label=NAME=VALUE.
func (s *Server) put(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		w.Header().Set("Allow", "PUT")
		fail(w, r, http.StatusMethodNotAllowed, r.Method+": expected PUT, as curl -T sends it")
		return
	}
	device := r.PathValue("device")
	connection := http.NewResponseController(w)
	connection.SetWriteDeadline(time.Time{}) // until the upload is read
	answer, err := s.accept(w, r, device)
	connection.SetWriteDeadline(time.Now().Add(time.Minute))
	var no *refusal
	if errors.As(err, &no) {
		s.Metrics.Uploads.WithLabelValues(no.result).Inc()
		s.Log.Warn("upload refused", "device", device, "status", no.status, "err", no.err, "from", r.RemoteAddr)
		if no.after > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(no.after))
		}
		reply(w, no.status, map[string]any{"error": no.Error()})
		return
	}
	status, result := http.StatusCreated, "accepted"
	if answer.Again {
		status, result = http.StatusOK, "again"
	}
	s.Metrics.Uploads.WithLabelValues(result).Inc()
	reply(w, status, answer)
}

// Answer is the answer to an upload that was accepted.
type Answer struct {
	Dumps      int   `json:"dumps"`
	Paths      int   `json:"paths"`
	Incomplete int   `json:"incomplete,omitempty"` // incomplete dumps
	Unreadable int64 `json:"unreadable,omitempty"` // unreadable records
	Again      bool  `json:"again,omitempty"`      // the same upload was accepted before
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func (s *Server) accept(w http.ResponseWriter, r *http.Request, device string) (a Answer, err error) {
	c, ok := s.sender(r, device)
	if !ok {
		return a, refuse(http.StatusUnauthorized, "refused", errors.New("the token is not one of this device"))
	}
	if err := ingest.CheckDevice(device); err != nil {
		return a, refuse(http.StatusBadRequest, "refused", err)
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	var labels store.Labels
	for name, values := range q {
		switch {
		case name == "label":
			for _, v := range values {
				err = cmp.Or(labels.Set(v), err)
			}
		case name != "build" && name != "fw" || len(values) > 1:
			err = fmt.Errorf("parameter %q: expected build and fw, each once, and label", name)
		}
	}
	if err != nil {
		return a, refuse(http.StatusBadRequest, "refused", err)
	}
	if err := s.admit(c); err != nil {
		return a, err
	}
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.Limits.Receive))
	s.mu.Lock()
	body := &body{Reader: http.MaxBytesReader(w, r.Body, s.Limits.Body), s: s, of: s.quotas(c)}
	s.mu.Unlock()
	defer func() { body.take(-body.taken) }()
	data, err := io.ReadAll(body)
	if err != nil {
		return a, s.unread(err)
	}
	// A client that sends slowly has no slot.
	release, err := s.slot(r.Context(), c)
	if err != nil {
		return a, err
	}
	defer release()
	text, err := s.text(bytes.NewReader(data), r.Header.Get("Content-Encoding"))
	if err != nil {
		return a, err
	}
	u := &ingest.Upload{Device: device, Build: q.Get("build"), FW: q.Get("fw"), Labels: labels.With(c.labels), Received: time.Now(), Text: text}
	return s.take(r.Context(), c, u)
}

// take adds an upload to the spool.
func (s *Server) take(ctx context.Context, c *client, u *ingest.Upload) (a Answer, err error) {
	res, again, err := s.Spool.Put(ctx, u, s.Limits.Ingest, func(res *ingest.Result, took time.Duration) error {
		s.charge(c, res.Dumps+res.Facts+res.Frames, took)
		return s.admitBuilds(c, res.Builds)
	})
	var no *refusal
	switch {
	case err == nil:
		return Answer{res.Dumps, res.Paths, res.Incomplete, res.Unreadable, again}, nil
	case errors.As(err, &no):
		return a, err
	case errors.Is(err, ingest.ErrLimit):
		return a, refuse(http.StatusRequestEntityTooLarge, "refused", err)
	case errors.Is(err, ingest.ErrDevice):
		return a, refuse(http.StatusForbidden, "refused", err)
	case ctx.Err() != nil:
		return a, &refusal{http.StatusServiceUnavailable, "failed", ctx.Err(), 10}
	case errors.As(err, new(Unreadable)):
		return a, refuse(http.StatusBadRequest, "refused", err)
	case errors.Is(err, ErrBusy):
		return a, &refusal{http.StatusTooManyRequests, "full", err, 60}
	case store.Full(err):
		s.full.Store(time.Now().Unix())
		return a, &refusal{http.StatusInsufficientStorage, "full", errors.New("no space left on the server"), 600}
	}
	s.Log.Error("spool", "err", err)
	return a, &refusal{http.StatusInternalServerError, "failed", errors.New("the server could not store the upload"), 60}
}

// text reads and decompresses an upload. If no encoding is given, it is that of the first bytes.
func (s *Server) text(body io.Reader, encoding string) ([]byte, error) {
	if encoding == "" {
		head := decompress.Peeker(body)
		encoding, body = decompress.Format(head), head
	}
	switch e := strings.ToLower(encoding); e {
	case "", "identity":
	case "gzip":
		body = decompress.NewReader(e, body)
	case "zstd":
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(s.Limits.Text)), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, s.unread(err)
		}
		defer z.Close()
		body = z
	default:
		return nil, refuse(http.StatusUnsupportedMediaType, "refused", fmt.Errorf("encoding %q: expected gzip or zstd", e))
	}
	text, err := io.ReadAll(io.LimitReader(body, s.Limits.Text+1))
	if int64(len(text)) > s.Limits.Text {
		err = zstd.ErrDecoderSizeExceeded
	}
	if err != nil {
		return nil, s.unread(err)
	}
	return text, nil
}

// unread returns the refusal of a body that cannot be read.
func (s *Server) unread(err error) error {
	var large *http.MaxBytesError
	var no *refusal
	switch {
	case errors.As(err, &no):
		return err
	case errors.As(err, &large) || errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded):
		return refuse(http.StatusRequestEntityTooLarge, "refused",
			fmt.Errorf("an upload has at most %d bytes, and %d decompressed", s.Limits.Body, s.Limits.Text))
	}
	return refuse(http.StatusBadRequest, "refused", fmt.Errorf("the upload cannot be read: %w", err))
}

// HTTPServer returns a server with time limits for slow clients.
func HTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 2 * time.Minute, WriteTimeout: 2 * time.Minute,
		IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 32},
		TLSConfig: &tls.Config{}, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
