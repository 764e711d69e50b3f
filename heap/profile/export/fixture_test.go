package export

import (
	"bytes"
	"testing"

	pprof "github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

func frame(fn, file string, line int) symbol.Frame {
	return symbol.Frame{Func: fn, Name: fn, File: file, Line: line}
}

var app = &symbol.Module{Name: "/bin/app", BuildID: "abcd", Start: 0x400000, End: 0x500000}

// addr is an address in the program of the fixture.
func addr(pc uint64, frames ...symbol.Frame) symbol.Addr {
	return symbol.Addr{PC: pc, Location: &symbol.Location{Module: app, Own: pc, Call: pc - 1, Frames: frames}}
}

// fixture has a dump of a program, and its call paths: main calls work and idle. An inlined wrapper is
// in front of malloc.
func fixture() (dump *profile.Dump, paths []profile.Path) {
	wrapped := frame("xmalloc", "/src/mem.c", 10)
	wrapped.Inlined = true
	main := addr(0x400100, frame("main", "/src/main.c", 3))
	work := addr(0x400200, wrapped, frame("work", "/src/work.c", 7))
	idle := addr(0x400300, frame("idle", "/src/main.c", 20))
	var b profile.Builder
	path := func(addrs ...symbol.Addr) profile.Path { return b.Path(addrs) }
	paths = []profile.Path{path(work, main), path(idle, main), path(symbol.Addr{PC: 0x9000}, work, main)}
	b.Add(paths[0], profile.Value{Bytes: 150, Count: 2})
	b.Add(paths[1], profile.Value{Bytes: 30, Count: 3})
	b.Add(paths[2], profile.Value{Bytes: 5, Count: 1})
	return b.End(profile.DumpInfo{Name: "dump 1", Number: 1, Boot: 1}), paths
}

func first(t testing.TB, v profile.View) *profile.Profile {
	dump, _ := fixture()
	return newProfile(t, dump).View(v)
}

func newProfile(t testing.TB, dumps ...*profile.Dump) *profile.Profile {
	t.Helper()
	p, err := profile.New(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// parsed returns the last dump as it is written for pprof, read by pprof's own package.
func parsed(t testing.TB, p *profile.Profile) (*pprof.Profile, []string) {
	t.Helper()
	var b bytes.Buffer
	notes, err := Write(&b, p, "pprof", profile.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	prof, err := pprof.ParseData(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return prof, notes
}
