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
