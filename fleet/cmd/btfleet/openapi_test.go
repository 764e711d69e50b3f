package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/server"
	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// api starts a server with tokens over a simulated fleet.
func api(t *testing.T) (url string, fleet simulate.Fleet) {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fleet = simulate.Default()
	fleet.Devices, fleet.Builds, fleet.Paths, fleet.Leak.Build, fleet.Leak.Share = 120, 2, 20, 1, 0.5
	if _, _, err := fleet.Store(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	spool, err := server.OpenSpool(t.TempDir(), 1<<30, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spool.Close() })
	log := slog.New(slog.DiscardHandler)
	db, err := openDB(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	handler := page.New(db, log)
	lines := ""
	for _, who := range []string{"read", "device d1", "device d2", "delete"} {
		lines += fmt.Sprintf("%s %x\n", who, sha256.Sum256([]byte(who)))
	}
	tokens, err := server.ReadTokens(strings.NewReader(lines), "tokens")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	limits := server.DefaultLimits
	limits.Rate, limits.Burst = 0, 7
	metrics := server.NewMetrics(registry, spool)
	w := &server.Writer{Spool: spool, Store: s, DeleteDevice: s.DeleteDevice, Log: log, Metrics: metrics, MaxUploads: 2000, MaxFacts: 1 << 20}
	h := httptest.NewServer((&server.Server{Spool: spool, Tokens: tokens, Limits: limits, Log: log, Metrics: metrics, Pages: handler, Writer: w}).Handler(registry))
	t.Cleanup(h.Close)
	return h.URL, fleet
}

// The server answers each request that the description of the API lists, with each status that it
// lists, in the form that it describes.
func TestOpenAPI(t *testing.T) {
	url, fleet := api(t)
	resp := request(t, "GET", url+"/v1/openapi.yaml", "read", "", nil)
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp.Status, err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = openapi3.Servers{{URL: url + "/v1"}}
	router, err := legacy.NewRouter(doc) // it validates the description, too
	if err != nil {
		t.Fatal(err)
	}
	// Answers that need a full disk: see TestFullDisk of package server.
	listed := map[string]bool{"PUT /dumps/{device} 507": true, "DELETE /devices/{device} 503": true}
	log := string(fleettest.Log("d1", "5ca1ab1e", 2, 5))
	leaks, other := fleet.BuildID(1), fleet.BuildID(0)
	for _, c := range []struct {
		method, path, token, encoding, body string
		status                              int
	}{
		{"PUT", "/dumps/d1", "device d1", "", log, 201},
		{"PUT", "/dumps/d1?build=x&fw=1", "device d1", "", log, 200},
		{"PUT", "/dumps/d1", "device d1", "", "no log", 400},
		{"PUT", "/dumps/d1", "device d2", "", log, 401},
		{"PUT", "/dumps/d2", "device d2", "", log, 403},
		{"PUT", "/dumps/d1", "device d1", "", strings.Repeat("x", 5<<20), 413},
		{"PUT", "/dumps/d1", "device d1", "br", log, 415},
		{"PUT", "/dumps/d1", "device d1", "", "", 400},
		{"PUT", "/dumps/d1", "device d1", "", "", 400},
		{"PUT", "/dumps/d1", "device d1", "", log, 429},
		{"GET", "/builds", "read", "", "", 200},
		{"GET", "/builds?since=2026-06-01", "read", "", "", 200},
		{"GET", "/builds?since=yesterday", "read", "", "", 400},
		{"GET", "/builds/" + leaks + "?since=2026-06-01T00:00:00Z", "read", "", "", 200},
		{"GET", "/builds/" + leaks + "?since=0d", "read", "", "", 400},
		{"GET", "/devices/sim-000003?since=x", "read", "", "", 400},
		{"GET", "/builds", "", "", "", 401},
		{"GET", "/builds/" + leaks, "read", "", "", 200},
		{"GET", "/builds/" + other, "read", "", "", 200},
		{"GET", "/builds/" + leaks, "device d1", "", "", 401},
		{"GET", "/builds/none", "read", "", "", 404},
		{"GET", "/diff?from=" + other + "&to=" + leaks, "read", "", "", 200},
		{"GET", "/diff?from=" + other + "&to=" + other, "read", "", "", 400},
		{"GET", "/diff?from=" + other + "&to=none", "read", "", "", 404},
		{"GET", "/diff?from=" + other + "&to=" + leaks, "", "", "", 401},
		{"GET", "/rollout?from=" + other + "&to=" + leaks, "read", "", "", 200},
		{"GET", "/rollout?from=" + other + "&to=none", "read", "", "", 404},
		{"GET", "/rollout?from=" + other + "&to=" + leaks, "", "", "", 401},
		{"GET", "/devices", "read", "", "", 200},
		{"GET", "/devices?from=100&build=" + leaks, "read", "", "", 200},
		{"GET", "/devices?from=-1", "read", "", "", 400},
		{"GET", "/devices", "", "", "", 401},
		{"GET", "/devices/sim-000003", "read", "", "", 200},
		{"GET", "/devices/sim-000003", "", "", "", 401},
		{"GET", "/devices/none", "read", "", "", 404},
		{"DELETE", "/devices/d1", "read", "", "", 401},
		{"DELETE", "/devices/-", "delete", "", "", 400},
		{"DELETE", "/devices/d1", "delete", "", "", 204},
	} {
		name := fmt.Sprintf("%s %s, token %q: %d", c.method, c.path, c.token, c.status)
		resp := request(t, c.method, url+"/v1"+c.path, c.token, c.encoding, strings.NewReader(c.body))
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != c.status {
			t.Errorf("%s: %s, %v\n%s", name, resp.Status, err, body)
			continue
		}
		route, params, err := router.FindRoute(resp.Request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		listed[fmt.Sprintf("%s %s %d", c.method, route.Path, c.status)] = true
		in := &openapi3filter.RequestValidationInput{Request: resp.Request, PathParams: params, Route: route}
		if err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: resp.StatusCode,
			Header: resp.Header, Body: io.NopCloser(bytes.NewReader(body)), Options: &openapi3filter.Options{IncludeResponseStatus: true}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			for status := range o.Responses.Map() {
				if key := method + " " + path + " " + status; !listed[key] {
					t.Errorf("%s: no request has this answer", key)
				}
			}
		}
	}
	if resp := request(t, "GET", url+"/v1/none", "read", "", nil); resp.StatusCode != 404 || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("an unknown path: %s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
}

func request(t *testing.T, method, url, token, encoding string, body io.Reader) *http.Response {
	t.Helper()
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if encoding != "" {
		r.Header.Set("Content-Encoding", encoding)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}
