package heaplog_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
)

// A ~h#map forgets the modules before it, with or without {{{reset}}} after it; a
// ~h#load does not, and elements count wherever they stand. (BT-REC-4)
func TestMapsOfARecording(t *testing.T) {
	blob, err := codec.Encoder{}.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x400010, 0x500010}, Size: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	record := string(codec.AppendLine(nil, blob)) + "\n"
	const a, b = "{{{module:0:/a:elf:}}}{{{mmap:0x400000:0x1000:load:0:rx:0x0}}}\n", "{{{module:1:/b:elf:}}}{{{mmap:0x500000:4096:load:1:rx:0x0}}}\n"
	const none = "-"
	for _, tt := range []struct{ log, want string }{
		{"~h#map t=0\n" + a + b + record, "/a /b"},
		{"~h#map t=0\n" + a + record + "~h#load t=1\n" + b + record, "/a -,/a /b"},
		{"~h#map t=0\n" + a + record + "~h#map t=1\n" + b + record, "/a -,- /b"},
		{"~h#map t=0\n" + a + record + "~h#map t=1\n" + record, "/a -," + none},
		{"~h#map t=0\n" + a + "~h#map t=1\n{{{reset}}}\n" + b + record, "- /b"},
		{"~h#map t=0\n" + a + record + "~h#boot\n" + record, "/a -," + none},
		{"~h#map t=0\n" + a + "~h#lost n=1\nI: " + b + record, "/a /b"},
		{"~h#begin 0\n" + a + record + b + record + "~h#end 0\n", "/a -,/a /b"},
		{a + "{{{module:0:/c:elf:}}}{{{mmap:0x500000:0x1000:load:0:rx:0}}}\n" + record, "/a /c"},
	} {
		var got []string
		for it, err := range open(t, strings.NewReader(tt.log)).Items() {
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range it.Allocs {
				var names []string
				named := false
				for _, at := range a.Stack {
					name := none
					if l := at.Location; l != nil && l.Module != nil {
						name, named = l.Module.Name, true
					}
					names = append(names, name)
				}
				if !named {
					names = []string{none}
				}
				got = append(got, strings.Join(names, " "))
			}
		}
		if strings.Join(got, ",") != tt.want {
			t.Errorf("%q: %q, want %q", tt.log, got, tt.want)
		}
	}
}

// recordedLine is the line of a record or an event of size bytes at addr.
func recordedLine(t *testing.T, kind int, size, addr, time uint64) string {
	t.Helper()
	var u codec.User
	u.Set(codec.TagAddress, addr)
	if kind >= 0 {
		u.Set(codec.TagEvent, uint64(kind))
		u.Set(codec.TagTime, time)
	}
	blob, err := codec.Encoder{}.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x400010}, Size: size}, &u)
	if err != nil {
		t.Fatal(err)
	}
	if kind >= 0 {
		return string(codec.AppendEventLine(nil, blob)) + "\n"
	}
	return string(codec.AppendLine(nil, blob)) + "\n"
}

// Events inside a dump are no part of it, and n does not count them. (BT-HEAD-4)
func TestEventsInADump(t *testing.T) {
	log := recordedLine(t, codec.EventAllocated, 64, 0x10, 1) +
		"~h#begin 0 u=1 n=2 b=96\n" + recordedLine(t, codec.EventFreed, 0, 0x10, 2) + recordedLine(t, -1, 64, 0x10, 0) +
		recordedLine(t, codec.EventAllocated, 500, 0x20, 3) + recordedLine(t, -1, 32, 0x30, 0) + "~h#end 0 n=2 b=96\n"
	r := open(t, strings.NewReader(log))
	var dumps []*profile.Dump
	for d, err := range r.Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		dumps = append(dumps, d)
	}
	if len(dumps) != 1 {
		t.Fatalf("%d dumps", len(dumps))
	}
	if d := dumps[0]; d.Total.Bytes != 96 || d.Records != 2 || !d.Complete() {
		t.Errorf("dump of %+v, %d records, complete %v, want the two records", d.Total, d.Records, d.Complete())
	}
	if e := r.Replay().Totals(); e.Live.Bytes != 500 || e.Live.Count != 1 {
		t.Errorf("live by events %+v, want the block that was allocated last", e.Live)
	}
}

// The order of lines is that of events, whatever their times. (BT-REC-5) A block is freed
// where another one is allocated at its address, and the free of an unknown address
// is counted. (BT-REC-6)
func TestOrderAndLossOfEvents(t *testing.T) {
	log := recordedLine(t, codec.EventAllocated, 64, 0x10, 900) + recordedLine(t, codec.EventFreed, 0, 0x10, 100) +
		recordedLine(t, codec.EventAllocated, 8, 0x20, 50) + "~h#lost\n" + recordedLine(t, codec.EventAllocated, 16, 0x20, 950) +
		recordedLine(t, codec.EventFreed, 0, 0x99, 960) + recordedLine(t, 7, 0, 0x20, 970)
	replay := replay.NewReplay()
	for e, err := range open(t, strings.NewReader(log)).Events() {
		if err != nil {
			t.Fatal(err)
		}
		replay.Add(*e)
	}
	e := replay.Totals()
	if e.Events != 5 || e.Lost != 1 || e.UnknownFrees != 1 || e.Live.Bytes != 16 || e.Live.Count != 1 {
		t.Errorf("%+v", e)
	}
}

// An item has the numbers of its dump and boot, and a ~h#heap line its values.
func TestDumpOfAnItem(t *testing.T) {
	const record = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n"
	const log = "text\n~h#boot\n~h#begin 0\n" + record + "~h#end 0\n~h#heap size=9 free=4 largest=3 min=2\n" +
		"~h#begin 1\n" + record + record + "~h#end 1\n~h#boot\n~h#begin 0\n" + record + "~h#end 0\n"
	var got []string
	for it, err := range open(t, strings.NewReader(log)).Items() {
		if err != nil {
			t.Fatal(err)
		}
		if it.Kind == recording.KindBlob {
			got = append(got, fmt.Sprintf("%d/%d", it.Dump, it.Boot))
		}
		if h := it.Heap; h != nil {
			got = append(got, fmt.Sprintf("heap %d %d %d %d", h.Size.Bytes, h.Free.Bytes, h.Largest.Bytes, h.Min.Bytes))
		}
		if it.Offset == 0 && it.Dump != 0 {
			t.Error("the text before the first dump is in a dump")
		}
	}
	if s, want := strings.Join(got, ", "), "1/1, heap 9 4 3 2, 2/1, 2/1, 3/2"; s != want {
		t.Errorf("%s, want %s", s, want)
	}
}

// A ~h#boot at the begin of a second log begins the boot that this log begins.
func TestBootsOfTwoLogs(t *testing.T) {
	const dump = "~h#begin 0\n~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n~h#end 0\n"
	for second, want := range map[string]string{"~h#boot\n" + dump: "1 2", dump: "1 2", dump + "~h#boot\n" + dump: "1 2 3"} {
		var boots []string
		first := heaplog.Stream(strings.NewReader("~h#boot\n"+dump), "first")
		for it, err := range open(t, strings.NewReader(second), first).Items() {
			if err != nil {
				t.Fatal(err)
			}
			if it.Kind == recording.KindBlob {
				boots = append(boots, strconv.Itoa(it.Boot))
			}
		}
		if got := strings.Join(boots, " "); got != want {
			t.Errorf("%q: boots %s, want %s", second, got, want)
		}
	}
}

// Each dump has the ~h#boot of its boot, and the Summary that of the last boot, which may have no
// dump. A boot that only a banner tells has none.
func TestBootHeaders(t *testing.T) {
	blob, err := codec.Encoder{}.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x400010}, Size: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	record := string(codec.AppendLine(nil, blob)) + "\n"
	event := eventLine(0, 0x1000, 0, 8, 5, 0x400010)
	dump := func(n int) string { return fmt.Sprintf("~h#begin %d t=%d\n%s~h#end %d\n", n, 5+n, record, n) }
	for _, tt := range []struct{ log, want, last string }{
		{dump(1), "1 ", ""},
		{"~h#boot build=a \x1b[0m\n" + dump(1) + dump(2), "1 ~h#boot build=a,1 ~h#boot build=a", "~h#boot build=a"},
		{dump(1) + "~h#boot build=a\n" + dump(1), "1 ,2 ~h#boot build=a", "~h#boot build=a"},
		{"~h#boot build=a\n" + dump(1) + "~h#boot build=b\n" + dump(1), "1 ~h#boot build=a,2 ~h#boot build=b", "~h#boot build=b"},
		{"~h#boot build=a\n" + dump(1) + "~h#boot build=b\n", "1 ~h#boot build=a", "~h#boot build=b"},
		{"~h#boot build=a\n~h#boot build=b\n" + dump(1), "1 ~h#boot build=b", "~h#boot build=b"},
		{"~h#boot build=a\n" + dump(1) + "*** Booting Zephyr OS\n" + dump(1), "1 ~h#boot build=a,2 ", ""},
		{"~h#boot build=a\n" + dump(1) + "*** Booting Zephyr OS\n~h#boot build=b\n" + dump(1), "1 ~h#boot build=a,2 ~h#boot build=b", "~h#boot build=b"},
		{"~h#boot build=a\n" + dump(9) + strings.Replace(dump(1), "t=6", "t=2", 1), "1 ~h#boot build=a,2 ", ""},
		{"~h#boot build=a\n" + record + record + "~h#boot build=b\n" + record, "1 ~h#boot build=a,2 ~h#boot build=b", "~h#boot build=b"},
		{"~h#boot build=a\n" + event, "1 ~h#boot build=a", "~h#boot build=a"},
		{"~h#boot build=a\n" + event + "~h#boot build=b\n", "1 ~h#boot build=a", "~h#boot build=b"},
	} {
		r := open(t, strings.NewReader(tt.log))
		var got []string
		for d, err := range r.Dumps() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(d.Boot, " ", d.BootHeader))
		}
		if got, last := strings.Join(got, ","), r.Summary().BootHeader; got != tt.want || last != tt.last {
			t.Errorf("%q: %q, last %q, want %q, %q", tt.log, got, last, tt.want, tt.last)
		}
	}
}
