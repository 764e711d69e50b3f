package symbol

import (
	"strings"
	"testing"
)

func TestReadMaps(t *testing.T) {
	list, err := ReadMaps(strings.NewReader(`5610d135e000-5610d13a7000 r--p 00000000 fe:00 247614                     /usr/bin/perl
5610d13a7000-5610d153c000 r-xp 00049000 fe:00 247614                     /usr/bin/perl

7f6d97a75000-7f6d97a77000 r-xp 00000000 00:00 0                          [vdso]
7f6d97a78000-7f6d97a9e000 r-xp 00001000 fe:00 325835                     /a path/with blanks.so (deleted)
7ffdda66c000-7ffdda68d000 rw-p 00000000 00:00 0
`), "perl.maps")
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		start, end, off uint64
		exec            bool
		name            string
	}{
		{0x5610d135e000, 0x5610d13a7000, 0, false, "/usr/bin/perl"},
		{0x5610d13a7000, 0x5610d153c000, 0x49000, true, "/usr/bin/perl"},
		{0x7f6d97a75000, 0x7f6d97a77000, 0, true, "[vdso]"},
		{0x7f6d97a78000, 0x7f6d97a9e000, 0x1000, true, "/a path/with blanks.so"},
		{0x7ffdda66c000, 0x7ffdda68d000, 0, false, ""},
	}
	if len(list) != len(want) {
		t.Fatalf("%d mappings, want %d", len(list), len(want))
	}
	for i, w := range want {
		m := list[i]
		name := ""
		if m.Module != nil {
			name = m.Module.Name
		}
		if m.Start != w.start || m.End != w.end || m.Offset != w.off || m.Exec != w.exec || name != w.name {
			t.Errorf("mapping %d: %+v %q, want %+v", i, m, name, w)
		}
	}
	if list[0].Module != list[1].Module {
		t.Error("two mappings of one file are two modules")
	}
	for text, want := range map[string]string{
		"":                                   "m: no mappings",
		"1000-2000 r-xp 0 0:0 0 /a\nrubbish": "m:2: expected START-END",
		"2000-1000 r-xp 0 0:0 0 /a":          "m:1: expected START-END",
		"1000-1000 r-xp 0 0:0 0 /a":          "m:1: expected START-END",
		"1000-2000 rx 0 0:0 0 /a":            "m:1: expected START-END",
		"1000-2000 r-xp zz 0:0 0 /a":         "m:1: expected START-END",
		"10000000000000000-2000 r-xp 0":      "m:1: expected START-END",
		strings.Repeat("\x00", 2<<20):        "m: a line of more than 1 MiB, expected lines as in /proc/PID/maps",
	} {
		if _, err := ReadMaps(strings.NewReader(text), "m"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100q: error %v, want one with %q", text, err, want)
		}
	}
}
