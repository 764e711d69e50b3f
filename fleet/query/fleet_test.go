package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// asked returns the rows of a query over the tables.
func asked(t testing.TB, d *DB, q string) (list [][]any, err error) {
	t.Helper()
	err = d.with(t.Context(), Scope{}, allTables, func(s *session) error {
		r, err := s.query(t.Context(), q)
		if err != nil {
			return err
		}
		defer r.Close()
		columns, err := r.Columns()
		for err == nil && r.Next() {
			row := make([]any, len(columns))
			into := make([]any, len(row))
			for i := range row {
				into[i] = &row[i]
			}
			err = r.Scan(into...)
			list = append(list, row)
		}
		return errors.Join(err, r.Err())
	})
	return list, err
}

// simulated returns a database for a store with a simulated fleet.
func simulated(t testing.TB, f *fleet) *DB {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Store(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return open(t, s)
}

func open(t testing.TB, s *store.Store) *DB {
	t.Helper()
	d, err := Open(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// A leak of 200 bytes per hour, on a twentieth of the devices of one of five builds, is first in
// leaks and in diff. No other path and no other build is reported.
func TestFindsTheLeak(t *testing.T) {
	f := defaultFleet()
	f.Devices, f.Paths = 2500, 50
	var r results
	r.add(t, &f)
	r.check(t, 1, 1)
}

// TestFindsTheLeakOften repeats the test for three fleets of 10,000 devices and 20 of 2,500, of which 25 leak. No other
// path is reported.
func TestFindsTheLeakOften(t *testing.T) {
	if !cmdtest.All() {
		t.Skip("it takes over ten minutes: LWSBT_FULL is not all")
	}
	for _, c := range []struct{ devices, paths, fleets, least int }{{2500, 150, 20, 19}, {10_000, 30, 3, 3}} {
		var r results
		for seed := range c.fleets {
			f := defaultFleet()
			f.Devices, f.Paths, f.Seed = c.devices, c.paths, uint64(seed+1)
			f.Leak.Path = (7*seed + 17) % f.Paths
			r.add(t, &f)
		}
		t.Logf("%d devices, %d call paths:", c.devices, c.paths)
		r.check(t, c.fleets, c.least)
	}
}

// results holds counts over fleets.
type results struct {
	first, firstInDiff int
	changes            map[string]int // words of the planted leaks in diffs
	words              [3]int         // of the planted leaks
	accused            int            // other paths and builds with the words leak, probably or changed
	perhaps, diffs     int            // other paths with the word probably in diffs; number of diffs
}

// add examines a fleet.
func (c *results) add(t *testing.T, f *fleet) {
	d := simulated(t, f)
	defer d.Close()
	if c.changes == nil {
		c.changes = map[string]int{}
	}
	for b := range f.Builds {
		l, err := d.Leaks(t.Context(), Scope{Builds: []string{f.BuildID(b)}})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range l.Rows {
			switch planted := b == f.Leak.Build && r.Stack[0].Address == leaf(f); {
			case planted:
				c.words[r.Verdict]++
				if i == 0 {
					c.first++
				}
				if i > 0 || r.Rate == nil || *r.Rate < 180 || *r.Rate > 230 || r.Grew*50 < r.Examined || r.Grew*100 > 8*r.Examined {
					t.Errorf("seed %d: the leak is row %d, on %d of the devices, want 0.05: %s", f.Seed, i, r.Grew, describe(&r))
				}
			case r.Verdict >= Probably:
				c.accused++
				t.Errorf("seed %d: build %d is accused: %s", f.Seed, b, describe(&r))
			}
		}
	}
	for b := range f.Builds - 1 {
		x, err := d.Diff(t.Context(), f.BuildID(b), f.BuildID(b+1), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		c.diffs++
		for i, r := range x.Rows {
			leak := r.Stack[0].Address == leaf(f)
			switch {
			case leak && b+1 == f.Leak.Build:
				c.changes[r.Evidence]++
				if i == 0 && r.Evidence != NoEvidence && r.Kind == "grown" {
					c.firstInDiff++
				} else {
					t.Logf("seed %d: diff: the leak is row %d: %+v", f.Seed, i, r)
				}
			case leak && b == f.Leak.Build: // it is gone
			case r.Evidence == Changed:
				c.accused++
				t.Errorf("seed %d: builds %d and %d: %+v", f.Seed, b, b+1, r)
			case r.Evidence == Perhaps:
				c.perhaps++
			}
		}
	}
}

// check checks that the leak is first in at least least fleets, and that nothing else is reported.
func (c *results) check(t *testing.T, fleets, least int) {
	t.Logf("%d fleets: first in leaks %d, words %v, first in diff %d, words %v, accused %d, probably changed %d in %d diffs", fleets, c.first, c.words, c.firstInDiff, c.changes, c.accused, c.perhaps, c.diffs)
	// One diff in a hundred has a path that "probably" changed, but did not.
	if c.first < least || c.firstInDiff < least || c.accused != 0 || c.perhaps > 1+c.diffs/40 {
		t.Errorf("%+v of %d fleets", *c, fleets)
	}
}

// leaf returns the address of the innermost frame of the planted leak.
func leaf(f *fleet) string { return fmt.Sprintf("code+%#x", f.Leak.Path*37+0x4000) }

func describe(r *Leak) string {
	rate := math.NaN()
	if r.Rate != nil {
		rate = *r.Rate
	}
	return fmt.Sprintf("%s %d evidence %.1f share %g grew %d pace %.2f ± %.2f rate %.0f since %v", r.Word(), r.Path, r.Evidence, r.Share, r.Grew, r.Pace, r.PaceErr, rate, r.Since)
}
