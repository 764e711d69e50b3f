package symbol

import (
	"strings"
	"testing"
)

// moduleAt names the module that a process has at an address, and the module's
// own address there.
func moduleAt(p *Process, addr uint64) (string, uint64) {
	if !p.Mapped() {
		return "no map", 0
	}
	p.Generation()
	m := p.maps.find(addr)
	if m == nil {
		return "", 0
	}
	return m.Module.Name, addr - m.Start + m.Offset
}

// The address X belongs to B, then to no module, then to D. B is loaded again at another
// address, and its own addresses are unchanged.
func TestModulesComeAndGo(t *testing.T) {
	const x, y = 0x7f0000201234, 0x7f0000901234
	p := process(t)
	step := func(markup, wantX string, ownX uint64, wantY string, ownY uint64) {
		t.Helper()
		for _, line := range strings.Split(markup, "\n") {
			if err := p.Markup([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if name, own := moduleAt(p, x); name != wantX || own != ownX {
			t.Errorf("after %q: X is %#x of %q, want %#x of %q", markup, own, name, ownX, wantX)
		}
		if name, own := moduleAt(p, y); name != wantY || own != ownY {
			t.Errorf("after %q: Y is %#x of %q, want %#x of %q", markup, own, name, ownY, wantY)
		}
	}
	step("nothing told yet", "no map", 0, "no map", 0)
	step(`[1.0] {{{reset}}}
[1.0] {{{module:0:A:elf:aa}}}{{{mmap:0x7f0000100000:0x100000:load:0:rx:0x0}}}
[1.0] {{{module:1:B:elf:BB01}}}
[1.0] {{{mmap:0x7f0000200000:0x100000:load:1:r-x:0x40000}}} trailing text`, "B", 0x41234, "", 0)
	if id := p.maps.find(x).Module.BuildID; id != "bb01" {
		t.Errorf("build-id of B is %q, want bb01", id)
	}
	step(`{{{reset}}}
{{{module:0:A:elf:aa}}}{{{mmap:0x7f0000100000:0x100000:load:0:rx:0x0}}}`, "", 0, "", 0)
	step(`{{{module:2:D:elf:dd}}}{{{mmap:0x7f0000200000:0x80000:load:2:rx:0x1000}}}`, "D", 0x2234, "", 0)
	step(`{{{module:3:B:elf:bb01}}}{{{mmap:0x7f0000900000:0x100000:load:3:rx:0x40000}}}`, "D", 0x2234, "B", 0x41234)
	step(`{{{mmap:0x7f0000201000:0x1000:load:3:rx:0x50000}}}`, "B", 0x50234, "B", 0x41234)
	if m := p.maps.find(0x7f0000200fff); m == nil || m.Module.Name != "D" {
		t.Error("what is before the new mapping is no longer D's")
	}
	if m := p.maps.find(0x7f0000202000); m == nil || m.Module.Name != "D" || m.Offset != 0x3000 {
		t.Errorf("what is after the new mapping: %+v, want D from 0x3000", m)
	}
}

func TestMarkupErrors(t *testing.T) {
	for line, want := range map[string]string{
		"{{{module:0:a}}}":                                                       "expected module:ID:NAME:elf:BUILDID",
		"{{{module:zero:a:elf:00}}}":                                             "expected a number",
		"{{{mmap:0x1000:0x1000:load:7:rx:0}}}":                                   "module 7 was not introduced",
		"{{{mmap:0x1000:0x1000:load:0}}}":                                        "expected mmap:ADDR",
		"{{{mmap:0x1000:lots:load:0:rx:0}}}":                                     `"lots": expected a number`,
		"{{{module:0:a:elf:00}}}{{{mmap:-1:1:load:0:rx:0}}}":                     `"-1": expected a number`,
		"{{{module:0:a:elf:00}}}{{{mmap:0xffffffffffffff00:0x200:load:0:rx:0}}}": "pass the end of memory",
	} {
		p := process(t)
		if err := p.Markup([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", line, err, want)
		}
	}
	for _, line := range []string{"", "{{{", "{{{reset", "}}}", "{{{pc:0x1234}}}", "{{{bt:0:0x1234}}}", "{{{}}}", "{ {{{ }"} {
		p := process(t)
		if err := p.Markup([]byte(line)); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if p.Mapped() {
			t.Errorf("%q tells of a map", line)
		}
	}
}

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
