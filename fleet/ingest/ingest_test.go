package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var received = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func read(t *testing.T, s *State, u Upload) *store.Batch {
	t.Helper()
	var b store.Batch
	if u.Received.IsZero() {
		u.Received = received
	}
	if _, err := u.Read(t.Context(), s, DefaultLimits, to(&b)); err != nil {
		t.Fatal(err)
	}
	return &b
}

// The memory of a device with several heaps is that of all; a report of another system is about the same memory.
func TestSeveralHeaps(t *testing.T) {
	for _, c := range []struct {
		lines                      string
		size, free, largest, least int64
	}{
		{"", -1, -1, -1, -1},
		{"~h#heap name=main size=900000 free=860000 largest=500000 min=850000\n~h#heap name=dma size=16384 free=9000 largest=9000 min=8000\n", 916384, 869000, 500000, 858000},
		{"~h#heap name=main free=860000\n~h#heap name=dma size=16384 free=9000 largest=8192\n", -1, 869000, 8192, -1},
		{"Free heap: 1024\n", -1, 1024, -1, -1},
		{"Free heap: 1024\n~h#heap name=main size=900000 free=860000\n", 900000, 860000, -1, -1},
	} {
		b := read(t, &State{}, Upload{Device: "d", Text: []byte("~h#boot build=b\n~h#begin 0 k=paths t=1000000\n" + c.lines + "~p#1\n~h#end 0\n")})
		if d := b.Dumps[0]; d.HeapSize != c.size || d.HeapFree != c.free || d.HeapLargest != c.largest || d.HeapMinimum != c.least {
			t.Errorf("%q: %d, %d, %d, %d", c.lines, d.HeapSize, d.HeapFree, d.HeapLargest, d.HeapMinimum)
		}
	}
}

func TestRows(t *testing.T) {
	const dumps, paths = 3, 20
	b := read(t, &State{}, Upload{Device: "d1", Text: fleettest.Log("d1", "5ca1ab1e", dumps, paths)})
	if len(b.Dumps) != dumps || len(b.Facts) != dumps*paths || len(b.Paths) != paths {
		t.Fatalf("%d dumps, %d facts, %d paths", len(b.Dumps), len(b.Facts), len(b.Paths))
	}
	for i, d := range b.Dumps {
		blocks, size := fleettest.Held(i, paths)
		if d.Build != "5ca1ab1e" || d.FW != "1.0" || d.Device != "d1" || d.Count != blocks || d.Bytes != size ||
			!d.Complete || d.Lost != 0 || d.Dump != int64(i) || d.Uptime != int64(i+1)*3_600_000_000 || d.HeapSize != 16777216 || d.HeapFree != 16777216-size {
			t.Errorf("dump %d: %+v, want %d blocks of %d bytes", i, d, blocks, size)
		}
		if want := received.Add(time.Duration(i+1-dumps) * time.Hour); d.Time != want.UnixMicro() {
			t.Errorf("dump %d at %v, want %v", i, time.UnixMicro(d.Time).UTC(), want)
		}
		sum := int64(0)
		for _, f := range b.Facts {
			if f.Dump == d.Dump {
				sum += f.Bytes
			}
		}
		if sum != size {
			t.Errorf("facts of dump %d have %d bytes, want %d", i, sum, size)
		}
	}
	// The range of the boot begins at 8000000, and its offsets count 2 bytes each.
	if got := b.Paths[0].Addresses; strings.Join(got, " ") != "0x8010000 0x8004000 0x8000200" {
		t.Errorf("addresses %v", got)
	}
}

// Parts of a log give the same rows as the whole log.
func TestParts(t *testing.T) {
	text := fleettest.Log("d1", "5ca1ab1e", 4, 5)
	whole := read(t, &State{}, Upload{Device: "d1", Text: text})
	var s State
	var parts store.Batch
	rest := text
	for len(rest) > 0 {
		end := bytes.Index(rest, []byte("~h#end"))
		end += bytes.IndexByte(rest[end:], '\n') + 1
		u := Upload{Device: "d1", Received: received, Text: rest[:end]}
		if _, err := u.Read(t.Context(), &s, DefaultLimits, to(&parts)); err != nil {
			t.Fatal(err)
		}
		rest = rest[end:]
	}
	if len(parts.Dumps) != 4 || len(parts.Facts) != len(whole.Facts) {
		t.Fatalf("%d dumps, %d facts", len(parts.Dumps), len(parts.Facts))
	}
	for i := range parts.Dumps {
		a, b := parts.Dumps[i], whole.Dumps[i]
		if a.Build != b.Build || a.Boot != b.Boot || a.Dump != b.Dump || a.Bytes != b.Bytes || a.Uptime != b.Uptime {
			t.Errorf("dump %d: %+v, want %+v", i, a, b)
		}
	}
	for i := range parts.Facts {
		if a, b := parts.Facts[i], whole.Facts[i]; a.Path != b.Path || a.Bytes != b.Bytes || a.Dump != b.Dump {
			t.Errorf("fact %d: %+v, want %+v", i, a, b)
		}
	}
}

// A ~h#boot ends where BT-HEAD-5 says, whatever stands behind it on its line: the state of a
// device never has more than the header, and no dump is counted again.
func TestHeaderEnds(t *testing.T) {
	text := fleettest.Log("d1", "5ca1ab1e", 3, 5)
	header, rest, _ := bytes.Cut(text, []byte("\n"))
	for name, first := range map[string][]byte{
		"a dump on its line": append(bytes.Clone(header), rest...),
		"CR line ends":       bytes.ReplaceAll(text, []byte("\n"), []byte("\r")),
		"text behind ESC":    slices.Concat(header, []byte("\x1b"), bytes.Repeat([]byte("."), 1<<20), []byte("\n"), rest),
	} {
		t.Run(name, func(t *testing.T) {
			var s State
			parts := strings.SplitAfter(string(first), "~h#end")
			var got []string
			var b store.Batch
			for i := range len(parts) - 1 {
				u := Upload{Device: "d1", Received: received.Add(time.Duration(i) * time.Hour), Text: []byte(parts[i] + " 0\n")}
				if _, err := u.Read(t.Context(), &s, DefaultLimits, to(&b)); err != nil {
					t.Fatal(err)
				}
				if s.Header != string(header) {
					t.Errorf("the state has a header of %d bytes, want %q", len(s.Header), header)
				}
			}
			for _, d := range b.Dumps {
				got = append(got, fmt.Sprint(d.Boot-b.Dumps[0].Boot, d.Dump))
			}
			if want := []string{"0 0", "0 1", "0 2"}; !slices.Equal(got, want) {
				t.Errorf("boots and dumps %q, want %q", got, want)
			}
		})
	}
}

// An upload that begins with the header of the boot before begins a boot, unless its dumps follow those before: devices
// write the same header after each start, and some send it with each upload.
func TestEqualHeaders(t *testing.T) {
	log := fleettest.Log("d1", "5ca1ab1e", 3, 3)
	header, rest, _ := bytes.Cut(log, []byte("\n"))
	var later [][]byte // the second and the third dump, each after the header
	for _, d := range bytes.SplitAfter(rest, []byte("~h#begin "))[2:] {
		later = append(later, slices.Concat(header, []byte("\n~h#begin "), bytes.TrimSuffix(d, []byte("~h#begin "))))
	}
	second, third := fleettest.Log("d1", "5ca1ab1e", 3, 4), fleettest.Log("d1", "5ca1ab1e", 3, 5)
	_, bare, _ := bytes.Cut(second, []byte("\n"))
	part := func(n int) []byte {
		return fmt.Appendf(nil, "~h#begin %d t=%d0000000000\n~b#size: 16, 0x8000100\n~h#end %d\n", n, n, n)
	}
	for name, c := range map[string]struct {
		uploads [][]byte
		want    string // boots and dumps
	}{
		"a log after each start":  {[][]byte{log, second, third}, "0.0 0.1 0.2 1.0 1.1 1.2 2.0 2.1 2.2"},
		"a header in each upload": {[][]byte{append(bytes.Clone(log[:bytes.Index(log, []byte("~h#begin 1"))]), '\n'), later[0], later[1]}, "0.0 0.1 0.2"},
		"no header after a start": {[][]byte{log, bare}, "0.0 0.1 0.2 1.0 1.1 1.2"},
		"an update, same content": {[][]byte{log, bytes.Replace(log, []byte("fw=1.0"), []byte("fw=2.0"), 1)}, "0.0 0.1 0.2 1.0 1.1 1.2"},
		"a late part, no header":  {[][]byte{log, part(9), part(7)}, "0.0 0.1 0.2 0.3 0.4"},
		"a late part, a header":   {[][]byte{log, later[0]}, "0.0 0.1 0.2 1.0"},
	} {
		var s State
		var boots []int64
		var got []string
		for i, text := range c.uploads {
			for _, d := range read(t, &s, Upload{Device: "d1", Received: received.Add(time.Duration(i) * time.Hour), Text: text}).Dumps {
				if len(boots) == 0 || boots[len(boots)-1] != d.Boot {
					boots = append(boots, d.Boot)
				}
				got = append(got, fmt.Sprintf("%d.%d", len(boots)-1, d.Dump))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: boots and dumps %q, want %s", name, got, c.want)
		}
	}
}

// A log that grows and is sent again, whole or without its beginning, adds what is new, also if nothing is known of the
// device but its last dump.
func TestGrowingLog(t *testing.T) {
	log := fleettest.Log("d1", "5ca1ab1e", 4, 3)
	header, _, _ := bytes.Cut(log, []byte("\n"))
	begin := func(n int) int { return bytes.Index(log, fmt.Appendf(nil, "~h#begin %d", n)) }
	next := fleettest.Log("d1", "5ca1ab1e", 2, 5) // after a start
	for name, uploads := range map[string][][]byte{
		"whole":                {log[:begin(1)], log[:begin(2)], log, append(bytes.Clone(log), next...)},
		"without the header":   {log[:begin(2)], log[begin(1):begin(3)], log[begin(2):], append(bytes.Clone(log[begin(3):]), next...)},
		"nothing new":          {log, append(bytes.Clone(log), "text\n"...), append(bytes.Clone(log), next...)},
		"a boot without dumps": {log, append(append(bytes.Clone(log), header...), '\n'), append(bytes.Clone(log), next...)},
		"cut in a dump":        {log[:begin(3)-10], log, append(bytes.Clone(log), next...)},
	} {
		for _, forget := range []bool{false, true} {
			if forget && name == "without the header" {
				continue
			}
			var s State
			var rows []store.Dump
			for i, text := range uploads {
				rows = append(rows, read(t, &s, Upload{Device: "d1", Received: received.Add(time.Duration(i) * time.Hour), Text: text}).Dumps...)
				if forget {
					s = State{Last: LastOf(&rows[len(rows)-1])}
				}
			}
			got := ""
			for _, d := range rows {
				got += fmt.Sprintf("%t.%d.%d ", d.Boot == rows[0].Boot, d.Dump, d.Uptime/3_600_000_000)
			}
			if want := "true.0.1 true.1.2 true.2.3 true.3.4 false.0.1 false.1.2 "; got != want {
				t.Errorf("%s, forget %t: boots, dumps and hours %s, want %s", name, forget, got, want)
			}
		}
	}
}

// The boots of a device differ, however close its uploads follow each other.
func TestBootsDiffer(t *testing.T) {
	var s State
	boots := map[int64]bool{}
	for i := range 3 {
		log := fleettest.Log("d1", "5ca1ab1e", 1, 2+i)
		for _, d := range read(t, &s, Upload{Device: "d1", Received: received.Add(time.Duration(i) * time.Microsecond), Text: append(log, fleettest.Log("d1", "5ca1ab1e", 1, 9+i)...)}).Dumps {
			boots[d.Boot] = true
		}
	}
	if len(boots) != 6 {
		t.Errorf("%d boots, want 6", len(boots))
	}
}

// A device that does the same after each start sends equal dumps at equal times: a header that differs tells its boots apart.
func TestEqualBoots(t *testing.T) {
	for name, key := range map[string]string{"epoch": "epoch=17%d0000000000000 ", "another key": "start=%d "} {
		for _, forget := range []bool{false, true} {
			var s State
			boots := map[int64]bool{}
			for i := range 3 {
				text := bytes.Replace(fleettest.Log("d1", "5ca1ab1e", 2, 3), []byte("~h#boot "), fmt.Appendf(nil, "~h#boot "+key, i), 1)
				for _, d := range read(t, &s, Upload{Device: "d1", Received: received.Add(time.Duration(i) * time.Hour), Text: text}).Dumps {
					boots[d.Boot] = true
				}
				if forget && key[:5] == "epoch" { // all but the last dump, as from a store
					s = State{Last: s.Last}
				}
			}
			if len(boots) != 3 {
				t.Errorf("%s: %d boots, want 3", name, len(boots))
			}
		}
	}
}

// A dump that is cut between uploads counts as one incomplete dump of each; a part may begin with what ends the dump
// before. The records of a boot without other headers are whole dumps.
func TestCutBetweenUploads(t *testing.T) {
	log := "~h#boot dev=d1 build=b\n~h#begin 0 t=1000000\n~b#size: 10, 0x100\n~b#size: 11, 0x200\n~h#end 0\n~h#begin 1 t=2000000\n~b#size: 12, 0x100\n~h#end 1\n"
	cut := strings.Replace(log, "size: 11", "size: 20, 0x300\n|~b#size: 21, 0x400\n|~b#size: 11", 1)
	for parts, want := range map[string]string{
		strings.Replace(log, "size: 10, 0x100\n", "size: 10, 0x100\n|", 1): "10 false, 11 false, 12 true",
		strings.Replace(log, "0x200\n", "0x200\n|", 1):                     "21 false, 12 true",
		cut: "30 false, 21 false, 11 false, 12 true",
		strings.Replace(cut, "~h#end 0\n", "", 1):                            "30 false, 21 false, 11 false, 12 true", // a line was lost
		"~h#boot dev=d1 build=b\n|~b#size: 10, 0x100\n|~b#size: 11, 0x100\n": "10 true, 11 true",
	} {
		var s State
		var got []string
		for text := range strings.SplitSeq(parts, "|") {
			var b store.Batch
			u := Upload{Device: "d1", Received: received, Text: []byte(text)}
			c, err := u.Read(t.Context(), &State{}, DefaultLimits, to(&store.Batch{}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := u.Read(t.Context(), &s, DefaultLimits, to(&b)); err != nil {
				t.Fatal(err)
			}
			incomplete := 0
			for _, d := range b.Dumps {
				got = append(got, fmt.Sprint(d.Bytes, " ", d.Complete))
				if !d.Complete {
					incomplete++
				}
			}
			if c.Dumps != len(b.Dumps) || c.Incomplete != incomplete && (strings.Contains(text, "~h#boot") || strings.Contains(text, "~h#end 0")) {
				t.Errorf("the answer says %d dumps, %d incomplete; stored are %d, %d", c.Dumps, c.Incomplete, len(b.Dumps), incomplete)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %q, want %s", parts, got, want)
		}
	}
}

// Times that no device reaches are none: sums of them would overflow.
func TestTimeOutOfRange(t *testing.T) {
	for header, want := range map[string]int64{
		"~h#boot epoch=1000\n~h#begin 0 t=4503599627370495\n": 4503599627370495,
		"~h#boot epoch=1000\n~h#begin 0 t=4503599627370496\n": -1,
		"~h#boot\n~h#begin 0 t=18446744073709551615\n":        -1,
		"~h#boot epoch=9223372036854775807\n~h#begin 0 t=7\n": 7,
	} {
		var s State
		d := read(t, &s, Upload{Device: "d1", Text: []byte(header + "~b#size: 10, 0x100\n~h#end 0\n~h#begin 1 t=8\n~h#end 1\n")}).Dumps[0]
		low, high := received.UnixMicro()-1, received.UnixMicro()
		if want > 7 {
			low, high = want+1000, want+1000
		}
		if d.Uptime != want || d.Time < low || d.Time > high {
			t.Errorf("%q: uptime %d, time %d; want %d, %d to %d", header, d.Uptime, d.Time, want, low, high)
		}
	}
}

// A boot that has no dump yet is the one that the next upload continues.
func TestBootWithoutDump(t *testing.T) {
	log := fleettest.Log("d1", "5ca1ab1e", 1, 3)
	header, rest, _ := bytes.Cut(log, []byte("\n"))
	var s State
	first := read(t, &s, Upload{Device: "d1", Text: slices.Concat(log, header, []byte("\n"))})
	second := read(t, &s, Upload{Device: "d1", Text: rest, Received: received.Add(time.Hour)})
	if len(first.Dumps) != 1 || len(second.Dumps) != 1 || second.Dumps[0].Boot <= first.Dumps[0].Boot || second.Dumps[0].Dump != 0 || second.Dumps[0].Build != "5ca1ab1e" {
		t.Errorf("%+v, then %+v", first.Dumps, second.Dumps)
	}
}

// A second ~h#boot begins another boot; the key epoch gives the time.
func TestBoots(t *testing.T) {
	one := fleettest.Log("d1", "5ca1ab1e", 1, 3)
	two := bytes.Replace(fleettest.Log("d1", "0ddba115", 2, 3), []byte("~h#boot "), []byte("~h#boot epoch=1790000000000000 "), 1)
	b := read(t, &State{}, Upload{Device: "d1", Text: append(one, two...)})
	if len(b.Dumps) != 3 {
		t.Fatal(len(b.Dumps))
	}
	if b.Dumps[0].Boot >= b.Dumps[1].Boot || b.Dumps[1].Boot != b.Dumps[2].Boot || b.Dumps[2].Dump != 1 || b.Dumps[1].Build != "0ddba115" {
		t.Errorf("%+v", b.Dumps)
	}
	if len(b.Paths) != 6 || b.Paths[0].Build != "5ca1ab1e" || b.Paths[3].Build != "0ddba115" {
		t.Errorf("call paths %+v, want three of each build", b.Paths)
	}
	if want := int64(1790000000000000 + 3_600_000_000); b.Dumps[1].Time != want {
		t.Errorf("time %d, want %d", b.Dumps[1].Time, want)
	}
}

// The rows of a dump show that lines were lost.
func TestLoss(t *testing.T) {
	lines := bytes.SplitAfter(fleettest.Log("d1", "5ca1ab1e", 1, 200), []byte("\n"))
	for i, l := range lines {
		if bytes.HasPrefix(l, []byte("~p#")) {
			lines[i+1] = nil
			break
		}
	}
	b := read(t, &State{}, Upload{Device: "d1", Text: bytes.Join(lines, nil)})
	blocks, _ := fleettest.Held(0, 200)
	d := b.Dumps[0]
	if want := 1 - float64(d.Count)/float64(blocks); d.Complete || math.Abs(d.Lost-want) > 1e-9 || want <= 0 || d.HeapSize != 16777216 {
		t.Errorf("%+v, lost %g, want %g", d, d.Lost, want)
	}
}

// diffLog returns a dump of paths, and n differences of which each repeats the one before.
func diffLog(n, paths int) []byte {
	text := fleettest.Log("d1", "b", 1, paths)
	for i := range n {
		text = fmt.Appendf(text, "~h#begin %d k=diff base=%d\n~h#end %d\n", i+1, i, i+1)
	}
	return text
}

// ofBuilds returns a dump of each of n builds.
func ofBuilds(n int) (text []byte) {
	for i := range n {
		text = append(text, fleettest.Log("d1", fmt.Sprint("b", i), 1, 1)...)
	}
	return text
}

func TestRefused(t *testing.T) {
	log := fleettest.Log("d1", "5ca1ab1e", 1, 50)
	for _, c := range []struct {
		name   string
		upload Upload
		limit  Limits
		want   error
	}{
		{"no dump", Upload{Device: "d1", Text: []byte("hello\n")}, DefaultLimits, ErrNoDump},
		{"empty", Upload{Device: "d1"}, DefaultLimits, ErrNoDump},
		{"a dump without records, not announced as empty", Upload{Device: "d1", Text: []byte("~h#begin 1\n~h#heap size=2000 free=1000\n")}, DefaultLimits, ErrNoDump},
		{"a boot with unreadable records", Upload{Device: "d1", Text: []byte("~h#boot dev=d1\n~m#AAAA\n")}, DefaultLimits, ErrNoDump},
		{"gzip", Upload{Device: "d1", Text: []byte("\x1f\x8b\b\x00")}, DefaultLimits, ErrText},
		{"UTF-16", Upload{Device: "d1", Text: []byte("\xfe\xff\x00~\x00m\x00#")}, DefaultLimits, ErrText},
		{"other device", Upload{Device: "d2", Text: log}, DefaultLimits, ErrDevice},
		{"paths", Upload{Device: "d1", Text: log}, Limits{Paths: 49, Frames: 1000, Dumps: 10, Facts: 1000, Builds: 8}, ErrLimit},
		{"frames", Upload{Device: "d1", Text: fleettest.Log("d1", "b", 1, 50)}, Limits{Paths: 50, Frames: 149, Dumps: 10, Facts: 1000, Builds: 8}, ErrLimit},
		{"facts", Upload{Device: "d1", Text: fleettest.Log("d1", "b", 10, 50)}, Limits{Paths: 50, Frames: 1000, Dumps: 10, Facts: 499, Builds: 8}, ErrLimit},
		{"1,600 paths of 1,000 frames", Upload{Device: "d1", Text: cmdtest.DeepLog(t, 1, 1600, 1000)}, DefaultLimits, ErrLimit},
		{"1,000 differences repeat 1,001 paths", Upload{Device: "d1", Text: diffLog(1000, 1001)}, DefaultLimits, ErrLimit},
		{"builds", Upload{Device: "d1", Text: ofBuilds(9)}, DefaultLimits, ErrLimit},
		{"dumps", Upload{Device: "d1", Text: fleettest.Log("d1", "b", 11, 1)}, Limits{Paths: 50, Frames: 1000, Dumps: 10, Facts: 1000, Builds: 8}, ErrLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b store.Batch
			s := State{Boot: 7}
			c.upload.Received = received
			_, err := c.upload.Read(t.Context(), &s, c.limit, to(&b))
			if !errors.Is(err, c.want) || len(b.Dumps)+len(b.Facts)+len(b.Paths) != 0 || s != (State{Boot: 7}) {
				t.Errorf("%v, %d rows, %+v", err, len(b.Dumps), s)
			}
		})
	}
	for _, name := range []string{"", "..", "../x", "a/b", "a b", "<b>", strings.Repeat("x", 129), "a\x00"} {
		if CheckDevice(name) == nil {
			t.Errorf("device %q is accepted", name)
		}
	}
}

// The name of the device ends where the reader of logs ends a header: before an escape sequence, too (BT-HEAD-5).
func TestDeviceOf(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[0;32mI (12) heap: ~h#boot build=b dev=d6\x1b[0m\n": "d6",
		"~h#boot w=32\n~h#begin 0\n~h#boot dev=d7\r\n":           "d7",
		"~h#end 0 dev=d8\n~h#boots dev=d9\nboot dev=d10\n":       "",
	} {
		if got := DeviceOf([]byte(text)); got != want {
			t.Errorf("%q: device %q, want %q", text, got, want)
		}
	}
}

// to returns a function that appends dumps to a batch.
func to(b *store.Batch) func(*Dump) error {
	return func(d *Dump) error { d.Append(b); return nil }
}
