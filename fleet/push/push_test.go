package push

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"

	"github.com/lwsbt/lwsbt/fleet/query"
)

var holders = []query.Holder{
	{Mean: 100.4, Blocks: 2, Stack: []query.Frame{
		{Address: "0x10", Function: "copy", File: "a.c", Line: 3}, {Address: "0x10", Function: "read", File: "a.c", Line: 9},
		{Address: "0x20", Function: "main", File: "m.c", Line: 1}}},
	{Mean: 50, Blocks: 1, Stack: []query.Frame{{Address: "code+0x30", Missing: "no ELF file"}, {Address: "0x20", Function: "main", File: "m.c", Line: 1}}},
}

var labels = map[string]string{"service_name": "fw", "build": "5ca1ab1e", "devices": "7"}

// stacks returns the stacks of a profile as text, with their values.
func stacks(p *profile.Profile) map[string]int64 {
	m := map[string]int64{}
	for _, s := range p.Sample {
		var names []string
		for _, l := range s.Location {
			for _, line := range l.Line {
				names = append(names, line.Function.Name)
			}
		}
		m[strings.Join(names, " ")] = s.Value[1]
	}
	return m
}

var want = map[string]int64{"copy read main": 100, "code+0x30 main": 50}

func TestProfile(t *testing.T) {
	p := Profile(holders, time.Unix(5, 0))
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	if got := stacks(p); !reflect.DeepEqual(got, want) || len(p.Location) != 3 || p.TimeNanos != 5e9 {
		t.Errorf("%v, %d locations", got, len(p.Location))
	}
}

func send(t *testing.T, kind string, h http.Handler) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	if err := (Target{Kind: kind, URL: s.URL, Token: "secret"}).Send(t.Context(), Profile(holders, time.Unix(5, 0)), labels); err != nil {
		t.Fatal(err)
	}
}

// raw checks the data of a profile in pprof's format.
func raw(t *testing.T, data []byte) {
	t.Helper()
	p, err := profile.Parse(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got := stacks(p); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// pusher implements Pyroscope's push.v1 service.
type pusher struct {
	got  *pushv1.PushRequest
	auth string
}

func (p *pusher) Push(_ context.Context, r *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	p.got, p.auth = r.Msg, r.Header().Get("Authorization")
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

func TestPyroscope(t *testing.T) {
	p := &pusher{}
	_, h := pushv1connect.NewPusherServiceHandler(p)
	send(t, "pyroscope", h)
	if len(p.got.GetSeries()) != 1 || p.auth != "Bearer secret" {
		t.Fatalf("%v %q", p.got, p.auth)
	}
	got := map[string]string{}
	for _, l := range p.got.Series[0].Labels {
		got[l.Name] = l.Value
	}
	if got["service_name"] != "fw" || got["build"] != "5ca1ab1e" || got["__name__"] != "memory" {
		t.Errorf("%v", got)
	}
	raw(t, p.got.Series[0].Samples[0].RawProfile)
}

// The request is that of Parca's ProfileStoreService.WriteRaw, as documented for its HTTP
// gateway.
func TestParca(t *testing.T) {
	var got struct {
		Series []struct {
			Labels struct {
				Labels []struct{ Name, Value string }
			}
			Samples []struct{ RawProfile []byte }
		}
	}
	send(t, "parca", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/profiles/writeraw" {
			http.NotFound(w, r)
			return
		}
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields()
		if err := d.Decode(&got); err != nil {
			http.Error(w, err.Error(), 400)
		}
	}))
	if len(got.Series) != 1 || len(got.Series[0].Labels.Labels) != 4 {
		t.Fatalf("%+v", got)
	}
	raw(t, got.Series[0].Samples[0].RawProfile)
}

func TestRefused(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no\x1b[31m", http.StatusForbidden) }))
	defer s.Close()
	p := Profile(holders, time.Time{})
	if err := (Target{Kind: "parca", URL: s.URL}).Send(t.Context(), p, labels); err == nil || !strings.Contains(err.Error(), "403") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%v", err)
	}
	if err := (Target{Kind: "x", URL: s.URL}).Send(t.Context(), p, labels); err == nil || !strings.Contains(err.Error(), "expected parca, pyroscope") {
		t.Errorf("%v", err)
	}
}
