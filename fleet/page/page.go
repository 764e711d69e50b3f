// Package page serves the pages of btfleet: builds, leaks, differences, devices. The server
// renders them, and they have no script, except for the flame graphs, which are the pages of
// package report. The same answers in JSON are below /v1 (assets/openapi.yaml).
package page

import (
	"bytes"
	"cmp"
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
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/export"
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

	answers *cache
	states  *cache // the statuses of builds

	mu   sync.Mutex
	rows query.Version // at the time read
	read time.Time
}

// New returns the pages for a database.
func New(db *query.DB, log *slog.Logger) *Pages {
	p := &Pages{db: db, log: log, mux: http.NewServeMux(), answers: newCache(128), states: newCache(10_000)}
	p.templates = template.Must(templates.Clone()).Funcs(template.FuncMap{"damaged": func() string { return damaged(db) }})
	p.mux.HandleFunc("GET /style-"+style+".css", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=31536000, immutable")
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Write(sheet)
	})
	p.page("/{$}", "/v1/builds", "builds.html", p.builds)
	p.page("/build/{build}", "/v1/builds/{build}", "build.html", p.build, "q")
	p.page("/diff", "/v1/diff", "diff.html", p.diff, "from", "to")
	p.page("/rollout", "/v1/rollout", "rollout.html", p.rollout, "from", "to")
	p.page("/devices", "/v1/devices", "devices.html", p.devices, "build", "from", "q")
	p.page("/device/{device}", "/v1/devices/{device}", "device.html", p.device)
	p.mux.HandleFunc("GET /v1/openapi.yaml", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		http.ServeFileFS(w, r, assets, "assets/openapi.yaml")
	})
	p.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.fail(w, r, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, errNotFound))
	})
	p.file("/build/{build}/heap", "text/html; charset=utf-8", p.heap)
	p.file("/diff/heap", "text/html; charset=utf-8", p.heap, "from", "to")
	p.file("/build/{build}/heap.pb.gz", "application/octet-stream", p.pprof)
	return p
}

// damaged returns the number of damaged files in words, "" if there are none.
func damaged(db *query.DB) string {
	if n := len(db.Damaged()); n > 0 {
		return cli.Count(n, "damaged file")
	}
	return ""
}

func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var l store.Labels
	if text := r.FormValue("label"); text != "" {
		if err := l.Set(text); err != nil {
			p.fail(w, r, fmt.Errorf("%w: %w", errInput, err))
			return
		}
	}
	r = r.WithContext(store.WithLabels(r.Context(), l))
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

// always is a patience that does not end.
const always = 1000 * time.Hour

// patience is the time for which a request for a page waits for a new answer if there is an earlier one.
const patience = time.Second

// wait returns the time for which a request waits. JSON is for programs, which wait for the new answer.
func wait(r *http.Request) time.Duration {
	if isAPI(r) {
		return time.Minute // less than the server has for an answer
	}
	return patience
}

// question is a request for an answer: the function returns the data for the template.
type question func(ctx context.Context, r *http.Request, o query.Scope) (any, error)

// page adds a page, and the same answer in JSON. Their parameters are since and the given ones.
func (p *Pages) page(path, api, name string, answer question, parameters ...string) {
	for _, pattern := range []string{path, api} {
		p.mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
			e, err := p.ask(r, name, answer, parameters)
			var data any
			if err == nil {
				data, err = p.complete(r, e.data)
			}
			switch {
			case err != nil:
				p.fail(w, r, err)
			case isAPI(r):
				p.json(w, r, http.StatusOK, data)
			default:
				v := &view{Data: data, url: r.URL}
				if fresh, err := p.version(r.Context()); err == nil && e.version != p.versionOf(fresh, window(r)) {
					v.Old = e.begin
				}
				p.show(w, http.StatusOK, name, v)
			}
		})
	}
}

// ask returns the answer to a request, which may be from the cache.
func (p *Pages) ask(r *http.Request, name string, answer question, parameters []string) (*entry, error) {
	if err := check(r, parameters); err != nil {
		return nil, err
	}
	o, err := scope(r)
	if err != nil {
		return nil, err
	}
	rows, err := p.version(r.Context())
	if err != nil {
		return nil, err
	}
	since := window(r)
	key := []string{name, r.PathValue("build"), r.PathValue("device"), since}
	for _, parameter := range parameters {
		key = append(key, r.FormValue(parameter))
	}
	return p.answers.get(r.Context(), fmt.Sprintf("%q", key), p.versionOf(rows, since), wait(r), func(ctx context.Context) (any, error) { return answer(ctx, r, o) })
}

// check checks the names of the parameters of a request: since, label and the given ones, each once. So the cache has one
// answer to a question. In the API, those of a difference are required.
func check(r *http.Request, parameters []string) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fmt.Errorf("%w: %w", errInput, err)
	}
	known := append([]string{"since", "label"}, parameters...)
	for name, values := range q {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%w: unknown parameter %q, expected %s", errInput, name, strings.Join(known, ", "))
		}
		if len(values) > 1 {
			return fmt.Errorf("%w: more than one parameter %s", errInput, name)
		}
	}
	if from, to := q.Get("from"), q.Get("to"); slices.Contains(parameters, "to") && (from != "" && from == to || isAPI(r) && (from == "" || to == "")) {
		return fmt.Errorf("%w: expected two builds, from and to", errInput)
	}
	return nil
}

// version returns the version of the rows, at most some seconds old.
func (p *Pages) version(ctx context.Context) (query.Version, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.read) < 3*time.Second {
		return p.rows, nil
	}
	v, err := p.db.Version(ctx)
	if err != nil {
		return nil, err
	}
	p.rows, p.read = v, time.Now()
	return v, nil
}

// versionOf returns the version of what is asked about builds, or about all. A time window moves.
func (p *Pages) versionOf(v query.Version, since string, builds ...string) string {
	text := fmt.Sprint(v.Of(builds...))
	if since != "" {
		text += time.Now().Truncate(5 * time.Minute).String()
	}
	return text
}

// scope returns the scope of a request: a build, and the dumps in the time window of the parameter since.
func scope(r *http.Request) (o query.Scope, err error) {
	if b := cmp.Or(r.PathValue("build"), r.FormValue("build")); b != "" {
		o.Builds = []string{b}
	}
	if o.Since, err = query.ParseSince(r.FormValue("since"), time.Now()); err != nil {
		return o, fmt.Errorf("%w: since %w", errInput, err)
	}
	return o, nil
}

// window returns the time window of a request, "" if there is none. It is the same for 1d and 24h.
func window(r *http.Request) string {
	t, _ := query.ParseSince(r.FormValue("since"), time.Unix(1<<40, 0)) // later than all dates
	if t.IsZero() {
		return ""
	}
	return t.UTC().String()
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

func (p *Pages) show(w http.ResponseWriter, status int, name string, v *view) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	if err := p.templates.ExecuteTemplate(w, name, v); err != nil {
		p.log.Warn("page", "path", v.url.Path, "err", err)
	}
}

func (p *Pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusInternalServerError, "The question could not be answered; the server's log says why."
	switch {
	case errors.Is(err, query.ErrNoDump) || errors.Is(err, errNotFound):
		status, text = http.StatusNotFound, err.Error()
		if isAPI(r) {
			text += "; GET /v1/openapi.yaml lists what there is"
			if n := damaged(p.db); n != "" {
				text += "; " + n + " of the store left out"
			}
		}
	case errors.Is(err, errInput):
		status, text = http.StatusBadRequest, err.Error()
	case errors.As(err, new(*working)):
		status, text = http.StatusAccepted, err.Error()
		w.Header().Set("Refresh", "5")
		w.Header().Set("Retry-After", "5")
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
	p.show(w, status, "error.html", &view{Data: text, url: r.URL})
}

// Build is a row on the page of all builds.
type Build struct {
	query.Build
	Trend  []float64 `json:"trend"`  // median bytes of the dumps of each of Builds.Days, -1 if there is none
	Ran    []int64   `json:"ran"`    // devices that sent a dump of the build on each of Builds.Days
	Status *Status   `json:"status"` // nil if it is not known yet
}

// builds is the answer of the page of all builds.
type builds struct {
	Builds []Build     `json:"builds"`
	Days   []time.Time `json:"days"` // with a dump
	Most   float64     `json:"-"`    // largest of all trends
	All    int64       `json:"-"`    // and of all numbers of devices
}

func (p *Pages) builds(ctx context.Context, _ *http.Request, o query.Scope) (any, error) {
	list, err := p.db.Builds(ctx, o)
	if err != nil {
		return nil, err
	}
	days, err := p.db.Days(ctx, o)
	if err != nil {
		return nil, err
	}
	all, rows := builds{Builds: []Build{}, Days: []time.Time{}}, map[string]int{}
	for _, d := range days {
		if n := len(all.Days); n == 0 || !d.Day.Equal(all.Days[n-1]) {
			all.Days = append(all.Days, d.Day)
		}
	}
	for i, b := range list {
		n := len(all.Days)
		all.Builds = append(all.Builds, Build{Build: b, Trend: slices.Repeat([]float64{-1}, n), Ran: make([]int64, n)})
		rows[b.Build] = i
	}
	k := 0
	for _, d := range days {
		if !d.Day.Equal(all.Days[k]) {
			k++
		}
		if i, known := rows[d.Build]; known {
			all.Builds[i].Trend[k], all.Builds[i].Ran[k] = d.Bytes, d.Ran
			all.Most, all.All = max(all.Most, d.Bytes), max(all.All, d.Ran)
		}
	}
	return all, nil
}

// topPaths is the number of call paths on the page of a build.
const topPaths = 50

func (p *Pages) build(ctx context.Context, r *http.Request, o query.Scope) (any, error) {
	rows, err := p.version(ctx)
	if err != nil {
		return nil, err
	}
	since := window(r)
	leaks, err := p.leaks(ctx, o, since, p.versionOf(rows, since, o.Builds...))
	if err != nil {
		return nil, err
	}
	paths := topPaths
	if r.FormValue("q") != "" {
		paths = 0 // all
	}
	top, err := p.db.Top(ctx, o, paths)
	if err != nil {
		return nil, err
	}
	list, err := p.db.Builds(ctx, o)
	if err != nil || len(list) == 0 {
		return nil, errors.Join(err, errNotFound)
	}
	shown := *leaks
	shown.Rows = slices.Clone(leaks.Rows)
	if err := p.curves(ctx, o, shown.Rows); err != nil {
		return nil, err
	}
	q := r.FormValue("q")
	top = slices.DeleteFunc(top, func(h query.Holder) bool { return !holds(h.Stack, q) })
	shown.Rows = slices.DeleteFunc(shown.Rows, func(l query.Leak) bool { return !holds(l.Stack, q) })
	return struct {
		Build  query.Build    `json:"build"`
		Leaks  *query.Leaks   `json:"leaks"`
		Top    []query.Holder `json:"top"`
		Search string         `json:"-"`
	}{list[0], &shown, top[:min(topPaths, len(top))], q}, nil
}

// drawn is the number of leaks on the page of a build that have curves.
const drawn = 3

// curves adds the curves of the first leaks.
func (p *Pages) curves(ctx context.Context, o query.Scope, list []query.Leak) error {
	var paths []int64
	for _, l := range list[:min(drawn, len(list))] {
		if l.Verdict.Sure() {
			paths = append(paths, l.Path)
		}
	}
	curves, err := p.db.Curves(ctx, o, paths...)
	for i := range list {
		if k := slices.IndexFunc(curves, func(c query.Curves) bool { return c.Path == list[i].Path }); k >= 0 {
			list[i].Curves = &curves[k]
		}
	}
	return err
}

// holds reports whether a frame of a stack has a text, in upper or lower case.
func holds(stack []query.Frame, text string) bool {
	return text == "" || slices.ContainsFunc(stack, func(f query.Frame) bool {
		return strings.Contains(strings.ToLower(f.String()+" "+f.Address), strings.ToLower(text))
	})
}

func (p *Pages) diff(ctx context.Context, r *http.Request, o query.Scope) (any, error) {
	list, err := p.db.Builds(ctx, o)
	if err != nil {
		return nil, err
	}
	from, to := r.FormValue("from"), r.FormValue("to")
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

// rollout answers whether an update may go on.
func (p *Pages) rollout(ctx context.Context, r *http.Request, o query.Scope) (any, error) {
	return p.db.Rollout(ctx, r.FormValue("from"), r.FormValue("to"), o)
}

// pair completes the choice of two builds to compare: the newest ones, of which it never chooses one twice.
func pair(list []query.Build, from, to string) (string, string) {
	for _, b := range list {
		if to == "" && b.Build != from {
			to = b.Build
		} else if from == "" && b.Build != to {
			from = b.Build
		}
	}
	return from, to
}

// Limits of a list of devices.
const (
	perPage = 100
	maxFrom = 10_000_000
)

func (p *Pages) devices(ctx context.Context, r *http.Request, o query.Scope) (any, error) {
	from := 0
	if v := r.FormValue("from"); v != "" {
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil || n > maxFrom {
			return nil, fmt.Errorf("%w: from %q, expected a number up to %d", errInput, v, maxFrom)
		}
		from = int(n)
	}
	search := r.FormValue("q")
	limit := from + perPage + 1
	if search != "" {
		limit = 0
	}
	list, err := p.db.Devices(ctx, o, limit)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(d query.Device) bool {
		return !strings.Contains(strings.ToLower(d.Device), strings.ToLower(search))
	})
	data := struct {
		Build   string         `json:"build"`
		From    int            `json:"from"`
		Devices []query.Device `json:"devices"`
		Before  string         `json:"-"` // from, on the page before; "" if there is none
		After   string         `json:"-"`
		Search  string         `json:"-"`
	}{Build: r.FormValue("build"), From: from, Search: search}
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

func (p *Pages) device(ctx context.Context, r *http.Request, o query.Scope) (any, error) {
	return p.db.Timeline(ctx, r.PathValue("device"), o)
}

// file adds a file that a function writes.
func (p *Pages) file(path, kind string, write func(ctx context.Context, r *http.Request, w io.Writer, o query.Scope) error, parameters ...string) {
	p.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		e, err := p.ask(r, path, func(ctx context.Context, r *http.Request, o query.Scope) (any, error) {
			var b bytes.Buffer
			err := write(ctx, r, &b, o)
			return b.Bytes(), err
		}, parameters)
		if err != nil {
			p.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", kind)
		if _, err := w.Write(e.data.([]byte)); err != nil {
			p.log.Warn("page", "path", r.URL.Path, "err", err)
		}
	})
}

// pprof writes the heap of a build as a pprof profile.
func (p *Pages) pprof(ctx context.Context, r *http.Request, w io.Writer, o query.Scope) error {
	top, err := p.db.Top(ctx, o, 0)
	if err != nil {
		return err
	}
	prof, err := profile.New(dumpOf(profile.NewBuilder(0), top, o.Builds[0]))
	if err != nil {
		return err
	}
	_, err = export.Write(w, prof, "pprof", 0)
	return err
}

// heap writes the page of package report for a build, or for the two of a difference: a flame graph of the heaps of their
// devices, with a dump for each build. Values are means per device.
func (p *Pages) heap(ctx context.Context, r *http.Request, w io.Writer, o query.Scope) error {
	b := profile.NewBuilder(0)
	var dumps []*profile.Dump
	title, v := "heap per device", view{url: r.URL}
	builds, back := o.Builds, v.Link("/build/"+url.PathEscape(r.PathValue("build")))
	if builds == nil {
		builds = []string{r.FormValue("from"), r.FormValue("to")}
		back = v.Link("/diff", "from", builds[0], "to", builds[1])
	}
	for _, build := range builds {
		o.Builds = []string{build}
		top, err := p.db.Top(ctx, o, report.MaxPaths)
		if err != nil {
			return err
		}
		dumps = append(dumps, dumpOf(b, top, "build "+Short(build)))
		title += fmt.Sprintf(", %s (%d devices)", Short(build), top[0].Examined)
	}
	prof, err := profile.New(dumps...)
	if err != nil {
		return err
	}
	return report.Write(w, prof, report.Options{Title: title, Subtitle: "mean bytes per device", Back: string(back)})
}
