package symbol

import (
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

func TestAddr(t *testing.T) {
	inApp := &Location{Module: &Module{Name: `C:\fw\app.elf`}, Own: 0x1234}
	for _, c := range []struct {
		addr          Addr
		text, missing string
	}{
		{Addr{}, "0x0", "no ELF file and no map given"},
		{Addr{PC: 0x401234}, "0x401234", "no ELF file and no map given"},
		{Addr{PC: 0x5678_1234_5678, State: Lost}, "?12345678", "only the low 31 bits are known"},
		{Addr{PC: 0x401234, Location: inApp}, "app.elf+0x1234", ""},
		{Addr{PC: 0x401234, Location: &Location{Module: &Module{}, Missing: "x"}}, "0x401234", "x"},
		{Addr{PC: 0x401234, Location: &Location{Frames: []Frame{{Name: "inner", Inlined: true}, {Name: "outer"}}}}, "inner", ""},
		{Addr{PC: 0x401234, Location: &Location{Frames: []Frame{{File: "a.c", Line: 3}}}}, "0x401234", ""},
	} {
		if got := c.addr.String(); got != c.text {
			t.Errorf("%+v: %q, want %q", c.addr, got, c.text)
		}
		if got := c.addr.Missing(); got != c.missing {
			t.Errorf("%+v: missing %q, want %q", c.addr, got, c.missing)
		}
		if c.addr.Location == nil && len(c.addr.Frames()) > 0 {
			t.Errorf("%+v: %d frames", c.addr, len(c.addr.Frames()))
		}
	}
	for s, want := range map[State]string{Exact: "exact", Inferred: "inferred", Lost: "lost", 7: "State(7)"} {
		if got := s.String(); got != want {
			t.Errorf("%d: %q, want %q", s, got, want)
		}
	}
}

// Resolve does not change the record, gives the reason for lost addresses, and accepts a stack
// of any depth.
func TestResolveKeepsTheRecord(t *testing.T) {
	const low = 0x5610_d13a_7000
	p := process(t)
	p.Map([]Mapping{{Start: low, End: low + 0x1000, Exec: true, Module: &Module{Name: "[app]"}},
		{Start: low + 1<<31, End: low + 1<<31 + 0x1000, Exec: true, Module: &Module{Name: "[lib]"}}})
	s, blob := lossy(t, codec.MachineWrap64, []uint64{low + 0x10})
	read := s.PCs[0]
	a := p.Resolve(nil, s, blob)[0]
	if s.PCs[0] != read || s.Marks.Lossy != 1 {
		t.Errorf("the record became %+v", s)
	}
	if a.State != Lost || !a.Ambiguous() || !strings.Contains(a.Missing(), "several") {
		t.Errorf("an address that fits two mappings: %+v, %s", a, a.Missing())
	}
	if a := p.Resolve(nil, s, nil)[0]; a.State != Lost || a.Ambiguous() {
		t.Errorf("without the blob: %+v", a)
	}
	deep := codec.Stack{PCs: make([]uint64, 100), Marks: codec.Marks{Lossy: 3}}
	if list := p.Resolve(nil, &deep, blob); len(list) != 100 || list[1].State != Lost || list[2].State != Exact {
		t.Errorf("%d addresses of 100: %v", len(list), list)
	}
	lossless := configured(t, Config{Lossless: true})
	if a := lossless.Resolve(nil, s, blob)[0]; a != (Addr{PC: read}) {
		t.Errorf("of a lossless encoder: %+v", a)
	}
}

// Without files, addresses get the modules of the memory map and offsets in them, and no
// file is opened.
func TestNoFiles(t *testing.T) {
	path := buildC(t, strings.Fields("gcc -O0 -g -pie -Wl,--build-id"), "prog.c", "other.c")
	f := open(t, path)
	p := configured(t, Config{Files: []FileSpec{{Path: path}, {Path: "/no/such/file"}}, NoFiles: true, Sysroots: []string{"/"}})
	if a := p.Locate(0x1234); a != (Addr{PC: 0x1234}) {
		t.Errorf("without a map: %+v", a)
	}
	l := located(p, Module{Name: path, BuildID: f.BuildID, Logged: true}, 0x1234)
	if l.Module == nil || l.Module.Name != path || l.Module.BuildID != f.BuildID || l.Module.File != nil || l.Own != 0x1234 || len(l.Frames) > 0 {
		t.Errorf("%+v", l)
	}
	if len(p.opened)+len(p.Files()) > 0 || len(allNotes(p)) > 0 {
		t.Errorf("%d files are open; notes %q", len(p.opened), allNotes(p))
	}
}

// The Module of equal mappings is one value, so that addresses of it can be compared.
func TestModulesAreShared(t *testing.T) {
	p := process(t)
	a := located(p, Module{Name: "[x]"}, 0x10)
	b := located(p, Module{Name: "[y]"}, 0x10)
	c := located(p, Module{Name: "[x]"}, 0x20)
	if a.Module != c.Module || a.Module == b.Module {
		t.Errorf("%p, %p and %p, want the first and the last to be one", a.Module, b.Module, c.Module)
	}
}

func TestResolveAllocatesNothing(t *testing.T) {
	path := buildC(t, []string{"gcc", "-O1", "-g", "-no-pie", "-fno-pie"}, "prog.c", "other.c")
	p := process(t, path)
	at := symbolAddr(t, p.Files()[0], "sum")
	s := codec.Stack{PCs: []uint64{at + 4, at + 8, 0x10}}
	addrs := p.Resolve(nil, &s, nil)
	if len(addrs[0].Frames()) == 0 {
		t.Fatalf("%+v: %s", addrs[0], addrs[0].Missing())
	}
	if n := testing.AllocsPerRun(100, func() { addrs = p.Resolve(addrs[:0], &s, nil) }); n > 0 {
		t.Errorf("%v allocations for addresses that were resolved before", n)
	}
}

// Remember keeps more addresses in the cache than there are by default, and their frames.
func TestRemember(t *testing.T) {
	path := buildC(t, []string{"gcc", "-O1", "-g", "-no-pie", "-fno-pie"}, "prog.c", "other.c")
	const addrs = minCached + 1000
	for _, remember := range []bool{false, true} {
		p := process(t, path)
		if remember {
			p.Remember(2 * minCached)
		}
		low, _ := p.Files()[0].extent()
		p.Locate(low)
		for i := range uint64(addrs) {
			p.Locate(low + 1<<32 + i)
		}
		if _, kept := p.locations[addrKey{pc: low}]; kept != remember || len(p.locations) > 2*minCached {
			t.Errorf("Remember %v: the first of %d addresses is cached: %v; %d are", remember, addrs, kept, len(p.locations))
		}
	}
}
