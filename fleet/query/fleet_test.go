package query

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/lwsbt/lwsbt/fleet/simulate"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/profile"
)

// simulated returns a store with a simulated fleet, and questions to it.
func simulated(t testing.TB, f *simulate.Fleet) *DB {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
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
	t.Cleanup(func() { d.Close(); s.Close() })
	return d
}

// A leak of 200 bytes per hour on a twentieth of the devices of one of five builds is first in
// leaks and in diff. No other path, and no other build, is accused.
func TestFindsTheLeak(t *testing.T) {
	seeds := 2
	if cmdtest.Full() {
		seeds = 100
	}
	if n, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		seeds = n
	}
	found, diffed, accused := 0, 0, 0
	for seed := range seeds {
		f := simulate.Default()
		f.Devices, f.Seed = 2500, uint64(seed+1)
		f.Leak.Path = (7*seed + 17) % f.Paths
		d := simulated(t, &f)
		for b := range f.Builds {
			l, err := d.Leaks(t.Context(), Scope{Builds: []string{f.BuildID(b)}})
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range l.Rows {
				if os.Getenv("SEEDS") != "" && r.D <= 0.3 && r.Z > 3 {
					fmt.Printf("%d %d %v %v\n", seed, b, r.Stack[0].Address == leaf(&f), describe(&r))
				}
				planted := b == f.Leak.Build && r.Stack[0].Address == leaf(&f)
				if planted && i == 0 && r.Verdict == profile.Leaking {
					found++
					if r.Rate == nil || *r.Rate < 180 || *r.Rate > 230 || r.Share < 0.035 || r.Share > 0.06 {
						t.Errorf("seed %d: rate %v, share %g, want 200 bytes per hour on 0.05", f.Seed, *r.Rate, r.Share)
					}
				} else if planted {
					t.Logf("seed %d: the leak is row %d: %v", f.Seed, i, describe(&r))
				}
				if !planted && r.Verdict >= profile.Probably {
					accused++
					t.Logf("seed %d: build %d is accused: %v", f.Seed, b, describe(&r))
				}
			}
		}
		for b := range f.Builds - 1 {
			c, err := d.Diff(t.Context(), f.BuildID(b), f.BuildID(b+1), Scope{})
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range c.Rows {
				leak := r.Stack[0].Address == leaf(&f)
				planted := leak && b+1 == f.Leak.Build
				fixed := leak && b == f.Leak.Build
				if planted && i == 0 && r.Evidence == Changed && r.Kind == "grown" {
					diffed++
				} else if planted {
					t.Logf("seed %d: diff: row %d: %s %q p %.2g, %.0f to %.0f", f.Seed, i, r.Kind, r.Evidence, r.P, r.Before, r.After)
				}
				if !planted && !fixed && r.Evidence != NoEvidence {
					accused++
					t.Logf("seed %d: diff %d: %s %s p %.2g, %.0f to %.0f", f.Seed, b, r.Stack[0], r.Kind, r.P, r.Before, r.After)
				}
			}
		}
	}
	t.Logf("first in leaks %d, first in diff %d, accused %d, of %d fleets", found, diffed, accused, seeds)
	if found < seeds || diffed < seeds || accused > 0 {
		t.Errorf("first in leaks in %d, in diff in %d of %d fleets, %d false accusations", found, diffed, seeds, accused)
	}
}

// leaf returns the address of the innermost frame of the planted leak.
func leaf(f *simulate.Fleet) string { return fmt.Sprintf("code+%#x", f.Leak.Path*37+0x4000) }

func describe(r *Leak) string {
	return fmt.Sprintf("%v %s grew %d shrank %d z %.1f d %.2f h2 %.2f rate %v score %.3g", r.Verdict, r.Stack[0], r.Grew, r.Shrank, r.Z, r.D, r.H2, *r.Rate, r.Score)
}
