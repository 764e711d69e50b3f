// Package page serves the pages of btfleet: builds, leaks, differences, devices. The server
// renders them, and they have no script, except for the flame graphs, which are the pages of
// package report. The same answers in JSON are below /v1 (assets/openapi.yaml).
package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lwsbt/lwsbt/fleet/push"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/report"
	"github.com/lwsbt/lwsbt/internal/cli"
)

//go:embed assets
var assets embed.FS

// sheet is the style sheet: that of package report, and what these pages have besides.
var sheet = func() []byte {
	own, err := assets.ReadFile("assets/style.css")
	if err != nil {
		panic(err)
	}
	return append([]byte(report.Style()), own...)
}()

// style is the name of the style sheet. The name changes with the content.
var style = func() string {
	sum := sha256.Sum256(sheet)
	return hex.EncodeToString(sum[:4])
}()

var templates = template.Must(template.New("").Funcs(functions).ParseFS(assets, "assets/*.html"))

// Pages serves all pages.
type Pages struct {
	db  *query.DB
	log *slog.Logger
	mux *http.ServeMux
	// templates are those of the package, with the notes of these pages.
	templates *template.Template

	mu    sync.Mutex
	cache map[string]*cached
}

// New returns the pages for a database.
func New(db *query.DB, log *slog.Logger) *Pages {
	p := &Pages{db: db, log: log, mux: http.NewServeMux(), cache: map[string]*cached{}}
	p.templates = template.Must(templates.Clone()).Funcs(template.FuncMap{"damaged": func() int { return len(db.Damaged()) }})
	p.mux.HandleFunc("GET /style-"+style+".css", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=31536000, immutable")
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Write(sheet)
	})
	p.page("/{$}", "/v1/builds", "builds.html", p.builds)
	p.page("/build/{build}", "/v1/builds/{build}", "build.html", p.build)
	p.page("/diff", "/v1/diff", "diff.html", p.diff)
	p.page("/devices", "/v1/devices", "devices.html", p.devices)
	p.page("/device/{device}", "/v1/devices/{device}", "device.html", p.device)
	p.mux.HandleFunc("GET /v1/openapi.yaml", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		http.ServeFileFS(w, r, assets, "assets/openapi.yaml")
	})
	p.mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		p.fail(w, r, fmt.Errorf("%s %s: %w; GET /v1/openapi.yaml lists what there is", r.Method, r.URL.Path, errNotFound))
	})
	p.mux.HandleFunc("GET /build/{build}/heap", func(w http.ResponseWriter, r *http.Request) {
		p.heap(w, r, r.PathValue("build"))
	})
	p.mux.HandleFunc("GET /diff/heap", func(w http.ResponseWriter, r *http.Request) {
		p.heap(w, r, r.FormValue("from"), r.FormValue("to"))
	})
	return p
}

func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	p.mux.ServeHTTP(w, r)
}

var (
	// errNotFound is the error of a page that does not exist.
	errNotFound = errors.New("not found")
	// errInput is the error of a request with a parameter that is missing or out of range.
	errInput = errors.New("the request is not valid")
)

// page adds a page, and the same answer in JSON. answer returns the data for the template.
func (p *Pages) page(path, api, name string, answer func(ctx context.Context, r *http.Request) (any, error)) {
	for _, pattern := range []string{path, api} {
		p.mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
			data, err := p.cached(r.Context(), name+"\x00"+r.PathValue("build")+r.PathValue("device")+"\x00"+r.URL.Query().Encode(),
				func(ctx context.Context) (any, error) { return answer(ctx, r) })
			switch {
			case err != nil:
				p.fail(w, r, err)
			case isAPI(r):
				p.json(w, r, http.StatusOK, data)
			default:
				p.show(w, r, http.StatusOK, name, data)
			}
		})
	}
}

// scope returns the scope of a request for builds: the dumps in the time window of the parameter since.
func scope(r *http.Request, builds ...string) (query.Scope, error) {
	since, err := query.ParseSince(r.FormValue("since"), time.Now())
	if err != nil {
		return query.Scope{}, fmt.Errorf("%w: since %w", errInput, err)
	}
	return query.Scope{Builds: builds, Since: since}, nil
}

// isAPI reports whether a request is answered in JSON.
func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/") }

func (p *Pages) json(w http.ResponseWriter, r *http.Request, status int, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(data); err != nil {
		p.log.Warn("page", "path", r.URL.Path, "err", err)
	}
}

func (p *Pages) show(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	if err := p.templates.ExecuteTemplate(w, name, &view{data, r.URL}); err != nil {
		p.log.Warn("page", "path", r.URL.Path, "err", err)
	}
}

func (p *Pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusInternalServerError, "The question could not be answered; the server's log says why."
	switch {
	case errors.Is(err, query.ErrNoDump) || errors.Is(err, errNotFound):
		status, text = http.StatusNotFound, err.Error()
	case errors.Is(err, errInput):
		status, text = http.StatusBadRequest, err.Error()
	case r.Context().Err() != nil:
		return
	default:
		p.log.Error("page", "path", r.URL.Path, "err", err)
	}
	text = cli.Printable(text)
	if isAPI(r) {
		p.json(w, r, status, map[string]string{"error": text})
		return
	}
	p.show(w, r, status, "error.html", text)
}

// Cache limits.
const (
	cacheFor  = 30 * time.Second
	maxCached = 128
)

// cached is an answer that has been computed, or is being computed.
type cached struct {
	done  chan struct{}
	until time.Time
	data  any
	err   error
}

// cached returns an answer from the cache, or computes it. Concurrent requests with the same
// key wait for one computation.
func (p *Pages) cached(ctx context.Context, key string, answer func(context.Context) (any, error)) (any, error) {
	p.mu.Lock()
	c := p.cache[key]
	if c == nil || !c.until.IsZero() && time.Now().After(c.until) {
		if len(p.cache) >= maxCached {
			clear(p.cache)
		}
		c = &cached{done: make(chan struct{})}
		p.cache[key] = c
		go func() {
			// All waiting requests need the answer, so do not cancel it with the request that started it.
			work, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
			defer stop()
			data, err := answer(work)
			p.mu.Lock()
			c.data, c.err, c.until = data, err, time.Now().Add(cacheFor)
			p.mu.Unlock()
			close(c.done)
		}()
	}
	p.mu.Unlock()
	select {
	case <-c.done:
		return c.data, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Build is a row on the page of all builds.
type Build struct {
	query.Build
	Trend []float64 `json:"trend"` // mean bytes of the dumps of each day, the oldest first
}

func (p *Pages) builds(ctx context.Context, r *http.Request) (any, error) {
	o, err := scope(r)
	if err != nil {
		return nil, err
	}
	list, err := p.db.Builds(ctx, o)
	if err != nil {
		return nil, err
	}
	res, err := p.db.Query(ctx, "select build, avg(bytes)::double as bytes from dumps where complete group by build, received::date order by build, received::date", o, 100_000)
	if err != nil {
		return nil, err
	}
	trends := map[string][]float64{}
	for _, row := range res.Rows {
		build, _ := row[0].(string)
		v, _ := row[1].(float64)
		trends[build] = append(trends[build], v)
	}
	all := []Build{}
	for _, b := range list {
		all = append(all, Build{b, trends[b.Build]})
	}
	return struct {
		Builds []Build `json:"builds"`
	}{all}, nil
}

// topPaths is the number of call paths on the page of a build.
const topPaths = 50

func (p *Pages) build(ctx context.Context, r *http.Request) (any, error) {
	o, err := scope(r, r.PathValue("build"))
	if err != nil {
		return nil, err
	}
	leaks, err := p.db.Leaks(ctx, o)
	if err != nil {
		return nil, err
	}
	top, err := p.db.Top(ctx, o, topPaths)
	if err != nil {
		return nil, err
	}
	list, err := p.db.Builds(ctx, o)
	if err != nil || len(list) == 0 {
		return nil, errors.Join(err, errNotFound)
	}
	return struct {
		Build query.Build    `json:"build"`
		Leaks *query.Leaks   `json:"leaks"`
		Top   []query.Holder `json:"top"`
	}{list[0], leaks, top}, nil
}

func (p *Pages) diff(ctx context.Context, r *http.Request) (any, error) {
	o, err := scope(r)
	if err != nil {
		return nil, err
	}
	list, err := p.db.Builds(ctx, o)
	if err != nil {
		return nil, err
	}
	from, to := r.FormValue("from"), r.FormValue("to")
	if from != "" && from == to || isAPI(r) && (from == "" || to == "") {
		return nil, fmt.Errorf("%w: expected two builds, from and to", errInput)
	}
	data := struct {
		Builds   []query.Build `json:"-"`
		From, To string        `json:"-"`
		Diff     *query.Diff   `json:"diff"`
	}{Builds: list}
	if from != "" && to != "" {
		if data.Diff, err = p.db.Diff(ctx, from, to, o); err != nil {
			return nil, err
		}
	}
	data.From, data.To = pair(list, from, to)
	return data, nil
}

// pair completes the choice of two builds to compare: the newest one with the one before it. It never
// chooses a build twice.
func pair(list []query.Build, from, to string) (string, string) {
	byAge := slices.SortedFunc(slices.Values(list), func(a, b query.Build) int { return b.First.Compare(a.First) })
	other := func(than string) string { // the next older build, or the oldest of the newer ones
		i := slices.IndexFunc(byAge, func(b query.Build) bool { return b.Build == than })
		if i+1 < len(byAge) {
			return byAge[i+1].Build
		}
		if i > 0 {
			return byAge[i-1].Build
		}
		return ""
	}
	if to == "" && len(byAge) > 0 {
		if to = byAge[0].Build; to == from {
			to = other(from)
		}
	}
	if from == "" {
		from = other(to)
	}
	return from, to
}

// Limits of a list of devices.
const (
	perPage = 100
	maxFrom = 10_000_000
)

func (p *Pages) devices(ctx context.Context, r *http.Request) (any, error) {
	o, err := scope(r)
	if err != nil {
		return nil, err
	}
	if b := r.FormValue("build"); b != "" {
		o.Builds = []string{b}
	}
	from := 0
	if v := r.FormValue("from"); v != "" {
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil || n > maxFrom {
			return nil, fmt.Errorf("%w: from %q, expected a number up to %d", errInput, v, maxFrom)
		}
		from = int(n)
	}
	list, err := p.db.Devices(ctx, o, from+perPage+1)
	if err != nil {
		return nil, err
	}
	data := struct {
		Build   string         `json:"build"`
		From    int            `json:"from"`
		Devices []query.Device `json:"devices"`
		Before  string         `json:"-"` // from, on the page before; "" if there is none
		After   string         `json:"-"`
	}{Build: r.FormValue("build"), From: from}
	if from < len(list) {
		data.Devices = list[from:]
	}
	if from > 0 {
		data.Before = strconv.Itoa(max(0, from-perPage))
	}
	if len(data.Devices) > perPage {
		data.Devices = data.Devices[:perPage]
		data.After = strconv.Itoa(from + perPage)
	}
	return data, nil
}

func (p *Pages) device(ctx context.Context, r *http.Request) (any, error) {
	o, err := scope(r)
	if err != nil {
		return nil, err
	}
	return p.db.Timeline(ctx, r.PathValue("device"), o)
}

// heap shows the flame graph of one build, or of two, and their difference.
func (p *Pages) heap(w http.ResponseWriter, r *http.Request, builds ...string) {
	data, err := p.cached(r.Context(), "heap\x00"+strings.Join(append(builds, r.FormValue("since")), "\x00"), func(ctx context.Context) (any, error) {
		o, err := scope(r)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = Write(ctx, p.db, &b, o, builds...)
		return b.Bytes(), err
	})
	if err != nil {
		p.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := w.Write(data.([]byte)); err != nil {
		p.log.Warn("page", "path", r.URL.Path, "err", err)
	}
}

// Write writes the page of package report for builds: a flame graph of the heaps of their
// devices, with a dump for each build. Values are means per device. It ignores the builds of
// the scope.
func Write(ctx context.Context, db *query.DB, w io.Writer, o query.Scope, builds ...string) error {
	b := profile.NewBuilder(0)
	var dumps []*profile.Dump
	title := "heap per device"
	for _, build := range builds {
		o.Builds = []string{build}
		top, err := db.Top(ctx, o, report.MaxPaths)
		if err != nil {
			return err
		}
		d, err := profile.FromPprof(b, push.Profile(top, time.Time{}), "build "+build)
		if err != nil {
			return err
		}
		dumps = append(dumps, d)
		title += fmt.Sprintf(", %s (%d devices)", short(build), top[0].Examined)
	}
	prof, err := profile.New(dumps...)
	if err != nil {
		return err
	}
	return report.Write(w, prof, report.Options{Title: title, Subtitle: "mean bytes per device"})
}
