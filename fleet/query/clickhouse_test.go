package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// tables returns the tables of a schema on a new server.
func tables(t *testing.T) *clickhouse.Store {
	t.Helper()
	s, err := clickhouse.Open(fleettest.ClickHouse(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, q := range clickhouse.Schema(0) {
		r, err := s.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	return s
}

// both writes batches to two stores; to the second twice.
type both struct {
	first  *store.Store
	second *clickhouse.Store
}

func (b both) Put(ctx context.Context, batch *store.Batch) error {
	return errors.Join(b.first.Put(ctx, batch), b.second.Put(ctx, batch), b.second.Put(ctx, batch))
}

// world is a small fleet with reboots, lost lines and uploads to two servers.
func manyBoots() fleet {
	f := defaultFleet()
	f.Devices, f.Paths, f.Reboots, f.Twice, f.Leak.Share = 250, 30, 0.1, 0.05, 0.2
	return f
}

// ClickHouse gives the same answers to all questions as the Parquet files, and a batch that is written again
// changes nothing.
func TestClickHouse(t *testing.T) {
	cmdtest.Long(t)
	f := manyBoots()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ch := tables(t)
	if _, _, err := f.Store(t.Context(), both{s, ch}); err != nil {
		t.Fatal(err)
	}
	duck, house := open(t, s), OpenClickHouse(ch)
	house.part = 30 // devices
	questions := questions(t, &f)
	for name := range questions {
		compare(t, name, questions[name], duck, house)
	}
	for _, b := range []int{2, 3} { // with names, paths are compared by them
		all, err := house.Unnamed(t.Context())
		addresses := all[f.BuildID(b)]
		if err != nil || len(addresses) < f.Paths {
			t.Fatalf("%d addresses, %v", len(addresses), err)
		}
		var frames []store.Frame
		for i, a := range addresses[2:] {
			frames = append(frames, store.Frame{Build: f.BuildID(b), Address: a, Function: "f_" + a, File: `C:\a.c`, Line: int32(i)})
		}
		if err := errors.Join(s.PutFrames(t.Context(), time.Now(), frames), ch.PutFrames(t.Context(), time.Now(), frames)); err != nil {
			t.Fatal(err)
		}
		for _, d := range []*DB{duck, house} {
			if rest, err := d.Unnamed(t.Context()); err != nil || !slices.Equal(rest[f.BuildID(b)], addresses[:2]) {
				t.Errorf("%q have no name, %v: want %q", rest, err, addresses[:2])
			}
		}
	}
	for _, name := range []string{"leaks", "diff"} {
		compare(t, name+" with names", questions[name], duck, house)
	}
	if x, err := house.Diff(t.Context(), f.BuildID(2), f.BuildID(3), Scope{}); err != nil || !x.ByName || len(x.Rows) < 20 || !strings.HasPrefix(x.Rows[0].Stack[0].Function, "f_") {
		t.Errorf("%+v, %v", x, err)
	}
	if l, err := house.Leaks(t.Context(), Scope{Builds: []string{f.BuildID(3)}}); err != nil || len(l.Rows) == 0 || l.Rows[0].Stack[0].Address != leaf(&f) {
		t.Errorf("%+v, %v: want the planted leak first", l, err)
	}
}

// questions returns all questions about a simulated fleet, by name.
func questions(t *testing.T, f *fleet) map[string]func(d *DB) (any, error) {
	ctx := t.Context()
	build := f.BuildID(f.Leak.Build)
	one, late := Scope{Builds: []string{build}}, Scope{Builds: []string{build}, Since: f.Start.AddDate(0, 0, 3).Add(5 * time.Hour)}
	return map[string]func(d *DB) (any, error){
		"builds":        func(d *DB) (any, error) { return d.Builds(ctx, Scope{}) },
		"builds since":  func(d *DB) (any, error) { return d.Builds(ctx, Scope{Since: late.Since}) },
		"devices":       func(d *DB) (any, error) { return d.Devices(ctx, Scope{}, 0) },
		"devices since": func(d *DB) (any, error) { return d.Devices(ctx, late, 7) },
		"find":          func(d *DB) (any, error) { return d.Find(ctx, build[:9]) },
		"leaks":         func(d *DB) (any, error) { return d.Leaks(ctx, one) },
		"leaks since":   func(d *DB) (any, error) { return d.Leaks(ctx, late) },
		"curves": func(d *DB) (any, error) {
			return d.Curves(ctx, one, f.PathID(f.Leak.Build), f.PathID(f.Leak.Build)+1)
		},
		"rollout":        func(d *DB) (any, error) { return d.Rollout(ctx, f.BuildID(2), f.BuildID(3), Scope{}) },
		"top":            func(d *DB) (any, error) { return d.Top(ctx, one, 0) },
		"top since":      func(d *DB) (any, error) { return d.Top(ctx, late, 5) },
		"diff":           func(d *DB) (any, error) { return d.Diff(ctx, f.BuildID(2), f.BuildID(3), Scope{}) },
		"timeline":       func(d *DB) (any, error) { return d.Timeline(ctx, f.DeviceID(f.Leak.Build), Scope{}) },
		"timeline since": func(d *DB) (any, error) { return d.Timeline(ctx, f.DeviceID(f.Leak.Build), Scope{Since: late.Since}) },
		"no build": func(d *DB) (any, error) {
			_, err := d.Top(ctx, Scope{Builds: []string{`no\'build`}}, 0)
			return fmt.Sprint("no dump: ", errors.Is(err, ErrNoDump)), nil
		},
		"no device": func(d *DB) (any, error) {
			_, err := d.Timeline(ctx, `d\' or 1=1`, Scope{})
			return fmt.Sprint("no dump: ", errors.Is(err, ErrNoDump)), nil
		},
	}
}

// compare asks two databases a question.
func compare(t *testing.T, name string, ask func(d *DB) (any, error), first, second *DB) {
	t.Helper()
	want, err := ask(first)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	got, err := ask(second)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	w, g := plain(t, want), plain(t, got)
	if where, ok := same(w.value, g.value); !ok || len(w.text) < 9 {
		t.Errorf("%s: %s\n%.300s\nwant\n%.300s", name, where, g.text, w.text)
	}
}

// plain returns a value as JSON.
func plain(t *testing.T, v any) (p struct {
	text  string
	value any
}) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &p.value)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.text = string(b)
	return p
}

// same compares values of JSON, numbers to 9 digits. It returns the place of a difference.
func same(a, b any) (where string, ok bool) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return fmt.Sprintf(": %v and %v", a, b), false
		}
		for k := range x {
			if where, ok := same(x[k], y[k]); !ok {
				return "." + k + where, false
			}
		}
		return "", true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return fmt.Sprintf(": %d elements and %d", len(x), len(y)), false
		}
		for i := range x {
			if where, ok := same(x[i], y[i]); !ok {
				return fmt.Sprintf("[%d]%s", i, where), false
			}
		}
		return "", true
	case float64:
		y, ok := b.(float64)
		if ok && math.Abs(x-y) <= 1e-9*(1+math.Abs(y)) {
			return "", true
		}
	default:
		if a == b {
			return "", true
		}
	}
	return fmt.Sprintf(": %v and %v", a, b), false
}
