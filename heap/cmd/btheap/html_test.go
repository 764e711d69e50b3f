package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// The page of a recording with events has moments of it, the costs, and the leaks if any.
// The numbers are of the events, added up by hand.
func TestPageOfEvents(t *testing.T) {
	var b strings.Builder
	event := func(kind, addr, ms, size uint64, pcs ...uint64) {
		u := &codec.User{}
		u.Set(codec.TagEvent, kind)
		u.Set(codec.TagAddress, addr)
		u.Set(codec.TagTime, ms*1000)
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{PCs: pcs, Size: size}, u)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(codec.AppendEventLine(nil, blob), '\n'))
	}
	b.WriteString("~h#boot prog=x w=32\n")
	event(codec.EventAllocated, 0x1000, 0, 500, 0x401100, 0x401900)
	event(codec.EventAllocated, 0x2000, 1000, 7000, 0x401200, 0x401900)
	event(codec.EventFreed, 0x2000, 3000, 0)
	event(codec.EventAllocated, 0x3000, 40000, 300, 0x401100, 0x401900)
	out, errs, code := command("", "html", logFile(t, "x.rec", b.String()))
	if code != 0 {
		t.Fatalf("code %d: %s", code, errs)
	}
	var d struct {
		Dumps []struct{ Bytes uint64 }
		Costs []struct {
			Name   string
			Values []uint64
		}
	}
	pageData(t, out, &d)
	large := 0 // moments from 1 s to 3 s, of 40 s
	for _, x := range d.Dumps {
		if x.Bytes == 7500 {
			large++
		}
	}
	if n := len(d.Dumps); n < 40 || n > 81 || large < n/20-1 || large > n/20+1 || d.Dumps[n/2].Bytes != 500 {
		t.Errorf("%d moments, want 40 to 80, of 7,500 bytes for 2 of 40 s, and else 500: %v", n, d.Dumps)
	}
	for i, want := range []struct {
		name         string
		bytes, count uint64
	}{{"peak", 7500, 2}, {"allocated", 7800, 3}} {
		if i >= len(d.Costs) || d.Costs[i].Name != want.name {
			t.Fatalf("costs: %+v, want %s", d.Costs, want.name)
		}
		var bytes, count uint64
		for v := d.Costs[i].Values; len(v) > 0; v = v[3:] {
			bytes, count = bytes+v[1], count+v[2]
		}
		if bytes != want.bytes || count != want.count {
			t.Errorf("%s: %d bytes in %d, want %d in %d", want.name, bytes, count, want.bytes, want.count)
		}
	}
}

// The page leaves out allocators where call paths begin, as the other reports do.
func TestPageFolds(t *testing.T) {
	log := logFile(t, "leaks.txt", "==1==ERROR: LeakSanitizer: detected memory leaks\n\nDirect leak of 40 byte(s) in 1 object(s) allocated from:\n    #0 0x4a1 in malloc (/lib/libasan.so+0x4a1)\n    #1 0x4b2 in main /src/a.c:5\n\n")
	for flag, want := range map[string]bool{"-q": false, "--no-fold": true} {
		page, errs, code := command("", "html", flag, log)
		if got := strings.Contains(page, `"malloc"`); code != 0 || got != want || !strings.Contains(page, `"main"`) {
			t.Errorf("html %s: exit code %d, malloc in the page: %v, want %v: %s", flag, code, got, want, errs)
		}
	}
}

func named(name, file string) *profile.Dump {
	return &profile.Dump{DumpInfo: profile.DumpInfo{Name: name, File: file}}
}

// The line below the page's title names a log once.
func TestSubtitle(t *testing.T) {
	a1, a3 := named("dump 1", "a.log"), named("dump 3", "a.log")
	b2, c := named("dump 2", "b.log"), named("c.log", "c.log")
	for _, x := range []struct {
		list []*profile.Dump
		want string
	}{
		{[]*profile.Dump{a1, a3}, "a.log, dump 1 to dump 3"},
		{[]*profile.Dump{a1, b2}, "a.log, dump 1 to b.log, dump 2"},
		{[]*profile.Dump{a1, c}, "a.log, dump 1 to c.log"},
	} {
		if got := subtitle(x.list); got != x.want {
			t.Errorf("got %q, want %q", got, x.want)
		}
	}
}

// pageData decodes the data of a page.
func pageData(t *testing.T, page string, data any) {
	t.Helper()
	m := regexp.MustCompile(`(?s)<script id="data" type="application/json">(.*?)</script>`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal("no data in the page")
	}
	if err := json.Unmarshal([]byte(m[1]), data); err != nil {
		t.Fatal(err)
	}
}

// pageMap is the heap map of a page.
type pageMap struct {
	Map *struct {
		Open    int
		Moments []struct {
			Name   string
			Blocks *struct {
				Used, Free, Largest uint64
				Count, Holes        int
			}
			Allocator *struct{ Free, Largest uint64 }
			Ranges    []struct {
				Start  string
				Length uint64
				Cells  []int
			}
			Pins []struct {
				Kept uint64
				Node int
			}
		}
	}
}

// The page has the map that btheap map writes. The numbers are those of tornLog's comment.
func TestPageMap(t *testing.T) {
	page, errs, code := command("", "html", "-q", logFile(t, "fw.log", tornLog(t)))
	var d pageMap
	pageData(t, page, &d)
	if code != 0 || d.Map == nil || len(d.Map.Moments) != 2 || d.Map.Open != 1 {
		t.Fatalf("exit code %d, %s: %+v", code, errs, d.Map)
	}
	first, last := d.Map.Moments[0], d.Map.Moments[1]
	if first.Blocks.Used != 3024 || first.Blocks.Largest != 1016 || first.Allocator.Largest != 900 || len(first.Pins) != 0 {
		t.Errorf("the first dump: %+v", first)
	}
	if b := last.Blocks; last.Name != "dump 2, 2 s" || b.Used != 1024 || b.Free != 3072 || b.Holes != 2 || b.Largest != 2024 || last.Allocator.Free != 3000 {
		t.Errorf("the last dump: %+v", last)
	}
	if len(last.Pins) != 1 || last.Pins[0].Kept != 1048 || last.Pins[0].Node == 0 {
		t.Errorf("the call paths that keep holes apart: %+v", last.Pins)
	}
	if r := last.Ranges[0]; len(last.Ranges) != 1 || r.Start != "0x20001000" || r.Length != 4096 || len(r.Cells) != 1024 || r.Cells[0] != 100 || r.Cells[249] != 100 || r.Cells[250] != 0 || r.Cells[512] != 100 || r.Cells[518] != 0 {
		t.Errorf("the ranges: %+v", last.Ranges)
	}
	for name, log := range map[string]string{"no addresses": leaking(t, true), "a pipe": ""} {
		args, in := []string{"html", logFile(t, "x.log", log)}, ""
		if log == "" {
			args, in = []string{"html"}, tornLog(t)
		}
		page, errs, code := command(in, args...)
		d.Map = nil
		if pageData(t, page, &d); code != 0 || d.Map != nil || strings.Contains(errs, "heap map") != (log == "") {
			t.Errorf("%s: exit code %d, %s: %+v", name, code, errs, d.Map)
		}
	}
}

// Of events, the page has the map over time. Each of 120 blocks is freed two events later, but
// every tenth.
func TestPageMapOfEvents(t *testing.T) {
	var b strings.Builder
	b.WriteString("~h#boot prog=x w=32 heap=1000+10000\n")
	write := func(kind, n, size uint64) {
		var u codec.User
		u.Set(codec.TagEvent, kind)
		u.Set(codec.TagAddress, 0x1000+n*256)
		u.Set(codec.TagTime, n*1000)
		u.Set(codec.TagThread, 1+n%2)
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x401200}, Size: size}, &u)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(codec.AppendEventLine(nil, blob), '\n'))
	}
	events, live := 0, uint64(0)
	for n := range uint64(120) {
		write(codec.EventAllocated, n, 100)
		events, live = events+1, live+100
		if n%10 != 0 {
			write(codec.EventFreed, n, 0)
			events, live = events+1, live-100
		}
	}
	log := logFile(t, "x.rec", b.String())
	page, errs, code := command("", "html", "-q", log)
	var d pageMap
	pageData(t, page, &d)
	if code != 0 || d.Map == nil || len(d.Map.Moments) != pageSteps {
		t.Fatalf("exit code %d, %s, %d events", code, errs, events)
	}
	last := d.Map.Moments[len(d.Map.Moments)-1]
	if last.Blocks.Used != live || last.Blocks.Count != int(live/100) || last.Name != "live at 0.119 s" {
		t.Errorf("the last moment: %+v, want %d bytes", last, live)
	}
	for i, x := range d.Map.Moments[1:] {
		if before := d.Map.Moments[i]; x.Blocks.Used+200 < before.Blocks.Used {
			t.Errorf("moment %d has %d bytes, the one before it %d", i+1, x.Blocks.Used, before.Blocks.Used)
		}
	}
	out, errs, code := command("", "map", log)
	if want := fmt.Sprintf("\n   0.119     1  %s", "1,200"); code != 0 || !strings.Contains(out, want) || !strings.Contains(out, "Time (s)  Boot") || !strings.Contains(out, "largest hole ") {
		t.Errorf("exit code %d, %s, no %q in\n%s", code, errs, want, out)
	}
	var threads struct {
		Threads bool
		Sites   [][]any
	}
	page, _, code = command("", "html", "--by", "thread", log)
	pageData(t, page, &threads)
	text := fmt.Sprint(threads.Sites)
	if code != 0 || !threads.Threads || !strings.Contains(text, "thread 1") || !strings.Contains(text, "thread 2") || !strings.Contains(text, "0x401200") {
		t.Errorf("--by thread: exit code %d, %+v", code, threads)
	}
}
