package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// posted is what a receiver reads of an alert.
type posted struct {
	Alert, Build, FW, Text string
	Hours                  *float64
	Leaks                  []struct {
		Verdict string
		Rate    float64
		Grew    int64
	}
}

// A webhook gets each alert once, also if it fails at first.
func TestAlerts(t *testing.T) {
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fleet := simulate.Default()
	fleet.Devices, fleet.Builds, fleet.Paths, fleet.Days = 200, 2, 20, 7
	fleet.Leak = simulate.Leak{Build: 1, Share: 0.5, Rate: 4000, Path: 3}
	fleet.Start = time.Now().UTC().AddDate(0, 0, -7)
	if _, _, err := fleet.Store(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	db, err := query.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	status := http.StatusServiceUnavailable
	var got []posted
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var a posted
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil || r.Method != "POST" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %v", r.Method, r.Header.Get("Content-Type"), err)
		}
		if len(a.Leaks) != 1 || a.Leaks[0].Verdict != "leak" || a.Leaks[0].Rate < 3600 || a.Leaks[0].Rate > 4400 || a.Leaks[0].Grew < 45 {
			t.Errorf("%+v, want a leak of 4,000 bytes per hour on 50 devices", a.Leaks)
		}
		if status == http.StatusOK {
			got = append(got, a)
		}
		w.WriteHeader(status)
	}))
	defer hook.Close()
	w := &watch{store: s, db: db, pages: page.New(db, slog.New(slog.DiscardHandler)), log: slog.New(slog.DiscardHandler), url: hook.URL + "/secret", days: 30}
	if err := w.pass(t.Context()); err == nil || !strings.Contains(err.Error(), "503") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a webhook that fails: %v", err)
	}
	status = http.StatusOK
	for range 2 {
		if err := w.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []string
	for _, a := range got {
		kinds = append(kinds, a.Alert)
		if a.Build != fleet.BuildID(1) || a.FW != "1.4.1" || a.Hours == nil || *a.Hours < 24 || *a.Hours > 24*30 || !strings.Contains(a.Text, "1.4.1") {
			t.Errorf("%+v", a)
		}
	}
	if !reflect.DeepEqual(kinds, []string{"leak", "exhausted"}) {
		t.Errorf("alerts %q", kinds)
	}
	// An unreachable webhook does not show its URL either.
	w.url = "http://127.0.0.1:1/secret"
	if err := w.once(t.Context(), alert{Build: "x", Alert: "leak"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an unreachable webhook: %v", err)
	}
}

// The sentence of an alert has no markup, mention or link of a device; the fields are as they are.
func TestAlertText(t *testing.T) {
	hours := []float64{5}
	name := "<!channel> @all *[x](http://evil.example)`~&"
	l := &query.Leaks{Devices: 2, Exhaustion: &query.Exhaustion{Each: hours}}
	l.Rows = []query.Leak{{Verdict: query.Leaking, Grew: 1, Stack: []query.Frame{{Function: "f<int>"}}}}
	list := (&watch{days: 7}).alerts(query.Build{Build: name, Firmware: name}, l)
	if len(list) != 2 {
		t.Fatal(list)
	}
	for _, a := range list {
		if strings.ContainsAny(a.Text, "<>@[]&*`~") || strings.Contains(a.Text, "://") || !strings.Contains(a.Text, "evil.example") || a.Firmware != name {
			t.Errorf("%+v", a)
		}
	}
}
