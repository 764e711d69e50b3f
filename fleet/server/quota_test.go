package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
)

// A device that sends more call paths than its quota is refused until the next day; others are not. What was refused before it was read costs nothing.
func TestQuotaOfValues(t *testing.T) {
	f := serve(t, t.TempDir(), open(t, t.TempDir()), nil)
	f.Limits.Values, f.Limits.Second = 400_000, 0
	log := fleettest.Log("d1", "b", 200, 1000) // 200,000 values of dumps, 3,000 frames
	for i, want := range []int{201, 201, 429, 429} {
		status, answer := f.send(t, "d1", append(log, fmt.Sprintln(i)...))
		if status != want || want == 429 && !strings.Contains(answer, "400000 values today") {
			t.Fatalf("upload %d: status %d, want %d: %s", i, status, want, answer)
		}
	}
	if n := waiting(t, f.Spool); n != 2 {
		t.Errorf("%d uploads in the spool, want 2", n)
	}
	if status, answer := f.send(t, "d2", fleettest.Log("d2", "b", 1, 5)); status != 201 {
		t.Errorf("another device: status %d: %s", status, answer)
	}
	f.Limits.Second = 100_000
	if f.charge(&client{device: "d3"}, 0, 5*time.Second); f.admit(&client{device: "d3"}) == nil { // 500,000 values
		t.Error("the time of reading costs nothing")
	}
}

// A device that sends more new builds than its quota is refused. Those that a device sent before are not new.
func TestQuotaOfBuilds(t *testing.T) {
	f := serve(t, t.TempDir(), open(t, t.TempDir()), nil)
	f.Limits.Builds = 3
	for i, c := range []struct {
		device, build string
		want          int
	}{{"d1", "b0", 201}, {"d1", "b1", 201}, {"d1", "b0", 201}, {"d1", "b2", 201}, {"d1", "b3", 429}, {"d1", "b1", 201}, {"d2", "b3", 201}} {
		status, answer := f.send(t, c.device, fleettest.Log(c.device, c.build, i+1, 5))
		if status != c.want || c.want == 429 && !strings.Contains(answer, "device has sent 3 new builds today") {
			t.Errorf("build %s of device %s: status %d, want %d: %s", c.build, c.device, status, c.want, answer)
		}
	}
}

// A client that invents devices and builds has ten times the quota of a device, by its address. Builds that others sent are not
// new.
func TestQuotaOfAddress(t *testing.T) {
	f := serve(t, t.TempDir(), open(t, t.TempDir()), nil)
	f.Limits.Builds = 1
	for i := range 12 {
		device, build := fmt.Sprint("d", i), fmt.Sprint("b", i)
		want := 201
		if i >= 10 {
			want = 429
		}
		if status, answer := f.send(t, device, fleettest.Log(device, build, 1, 5)); status != want || want == 429 && !strings.Contains(answer, "10 new builds") {
			t.Errorf("build %d: status %d, want %d: %s", i, status, want, answer)
		}
	}
	if status, answer := f.send(t, "last", fleettest.Log("last", "b3", 1, 5)); status != 201 {
		t.Errorf("a known build: status %d: %s", status, answer)
	}
}
