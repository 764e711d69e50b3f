package logs

import (
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/symbol"
)

// A ~h#map forgets the modules before it, with or without {{{reset}}} after it; a
// ~h#load does not, and elements count wherever they stand. (BT-REC-4)
func TestMapsOfARecording(t *testing.T) {
	blob, err := codec.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x400010, 0x500010}, Size: 1}, codec.MachineExact64, codec.SearchLws)
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
		r, err := Open(t.Context(), &Flags{}, nil, strings.NewReader(tt.log), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = r.Each(Handler{Sequence: true, Record: func(_ *dump.Record, _ symbol.Recovery, addrs []symbol.FrameAddr) error {
			names := []string{}
			for _, at := range addrs {
				name := none
				if at.Module != "" {
					name = at.Module
				}
				names = append(names, name)
			}
			if len(names) == 0 {
				names = []string{none}
			}
			got = append(got, strings.Join(names, " "))
			return nil
		}})
		r.Close()
		if err != nil || strings.Join(got, ",") != tt.want {
			t.Errorf("%q: %q, %v, want %q", tt.log, got, err, tt.want)
		}
	}
}

// eventLine is the line of a record or an event of size bytes at addr.
func eventLine(t *testing.T, kind int, size, addr, time uint64) string {
	t.Helper()
	var u codec.User
	u.Set(codec.TagAddress, addr)
	if kind >= 0 {
		u.Set(codec.TagEvent, uint64(kind))
		u.Set(codec.TagTime, time)
	}
	blob, err := codec.AppendBlobUser(nil, &codec.Stack{PCs: []uint64{0x400010}, Size: size}, &u, codec.MachineExact64, codec.SearchLws)
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
	log := eventLine(t, codec.EventAllocated, 64, 0x10, 1) +
		"~h#begin 0 u=1 n=2 b=96\n" + eventLine(t, codec.EventFreed, 0, 0x10, 2) + eventLine(t, -1, 64, 0x10, 0) +
		eventLine(t, codec.EventAllocated, 500, 0x20, 3) + eventLine(t, -1, 32, 0x30, 0) + "~h#end 0 n=2 b=96\n"
	r, err := Open(t.Context(), &Flags{}, nil, strings.NewReader(log), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := r.Profile(0, nil)
	if err != nil || len(p.Dumps) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if d := p.Dumps[0]; d.Total.Bytes != 96 || d.Records != 2 || !d.Complete() {
		t.Errorf("dump of %+v, %d records, complete %v, want the two records", d.Total, d.Records, d.Complete())
	}
	if e := r.Events(); e.Live.Bytes != 500 || e.Live.Count != 1 {
		t.Errorf("live by events %+v, want the block that was allocated last", e.Live)
	}
}

// The order of lines is that of events, whatever their times. (BT-REC-5) A block is freed
// where another one is allocated at its address, and the free of an unknown address
// is counted. (BT-REC-6)
func TestOrderAndLossOfEvents(t *testing.T) {
	log := eventLine(t, codec.EventAllocated, 64, 0x10, 900) + eventLine(t, codec.EventFreed, 0, 0x10, 100) +
		eventLine(t, codec.EventAllocated, 8, 0x20, 50) + "~h#lost\n" + eventLine(t, codec.EventAllocated, 16, 0x20, 950) +
		eventLine(t, codec.EventFreed, 0, 0x99, 960) + eventLine(t, 7, 0, 0x20, 970)
	r, err := Open(t.Context(), &Flags{}, nil, strings.NewReader(log), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Profile(0, nil); err != nil {
		t.Fatal(err)
	}
	e := r.Events()
	if e.Allocations != 3 || e.Frees != 2 || e.Lost != 1 || e.UnknownFrees != 1 || e.Live.Bytes != 16 || e.Live.Count != 1 {
		t.Errorf("%+v", e)
	}
}
