package heaplog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/symbol"
)

// event returns a line ~e#.
func eventLine(kind, addr, old, size, us uint64, pcs ...uint64) string {
	u := &codec.User{}
	u.Set(codec.TagEvent, kind)
	u.Set(codec.TagAddress, addr)
	u.Set(codec.TagTime, us)
	if kind == codec.EventMoved {
		u.Set(codec.TagOldAddress, old)
	}
	blob, err := codec.Encoder{}.AppendBlob(nil, &codec.Stack{Size: size, PCs: pcs}, u)
	if err != nil {
		panic(err)
	}
	return string(codec.AppendEventLine(nil, blob)) + "\n"
}

// recorded has a block of 100 bytes, then one of 200 bytes, which is freed, then a move of
// the first one to 150 bytes, and a free of nothing.
func recorded() string {
	return eventLine(codec.EventAllocated, 0x10, 0, 100, 1000, 0x401000) + eventLine(codec.EventAllocated, 0x20, 0, 200, 2000, 0x402000) +
		eventLine(codec.EventFreed, 0x20, 0, 0, 3000) + eventLine(codec.EventMoved, 0x30, 0x10, 150, 4000, 0x403000) +
		eventLine(codec.EventFreed, 0x99, 0, 0, 5000)
}

// notes returns the texts of a pass's notes.
func notes(r *heaplog.Reader) string {
	var list []string
	for _, n := range r.Summary().Notes {
		list = append(list, n.Text)
	}
	return strings.Join(list, "\n")
}

func TestMoments(t *testing.T) {
	replay, then := replay.NewReplay(), 3500*time.Microsecond
	begin := replay.Live(0)
	var live *profile.Dump
	for e, err := range open(t, strings.NewReader(recorded())).Events() {
		if err != nil {
			t.Fatal(err)
		}
		if live == nil && e.Time > then {
			live = replay.Live(then)
		}
		replay.Add(*e)
	}
	for _, c := range []struct {
		dump *profile.Dump
		want string
	}{
		{replay.Peak(), "live at the peak: 300 bytes, 2 blocks, 2ms"},
		{replay.End(), "live at the end: 150 bytes, 1 blocks, 5ms"},
		{live, "live: 100 bytes, 1 blocks, 3.5ms"},
		{begin, "live: 0 bytes, 0 blocks, 0s"},
	} {
		if got := fmt.Sprintf("%s: %d bytes, %d blocks, %v", c.dump.Name, c.dump.Total.Bytes, c.dump.Total.Count, c.dump.Time); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	// A recording of events alone has one dump, that of the end; one with
	// dumps has these.
	for _, c := range []struct{ log, want string }{
		{recorded(), "live at the end 150"},
		{recorded() + "~h#begin 1\n" + readme + "\n~h#end 1\n", "log 7520"},
	} {
		r := open(t, strings.NewReader(c.log))
		var got []string
		for d, err := range r.Dumps() {
			got = append(got, fmt.Sprint(d.Name, " ", d.Total.Bytes, err)[:len(c.want)])
		}
		if len(got) != 1 || got[0] != c.want || r.Replay().Totals().Events != 5 {
			t.Errorf("dumps %q, want %q", got, c.want)
		}
		if bad := r.Summary().BadFrees; len(bad) != 1 || bad[0].Line != 5 {
			t.Errorf("bad frees %v", bad)
		}
	}
	r := open(t, strings.NewReader(readme+"\n"))
	dumpsOf(r)
	if r.Replay() != nil {
		t.Error("a replay of no event")
	}
}

func TestEvents(t *testing.T) {
	r := open(t, strings.NewReader("~h#boot\n"+recorded()+"~h#boot\n"+recorded()))
	var got []string
	for e, err := range r.Events() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d/%d %v %#x %#x %d", e.Boot, e.Kind, e.Time, e.Addr, e.Old, e.Bytes))
	}
	want := []string{"1/0 1ms 0x10 0x0 100", "1/0 2ms 0x20 0x0 200", "1/1 3ms 0x20 0x0 0", "1/2 4ms 0x30 0x10 150", "1/1 5ms 0x99 0x0 0"}
	for _, w := range slices.Clone(want) {
		want = append(want, "2"+w[1:])
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// dumpsOf returns what Dumps yields: totals and whether dumps are complete, and errors.
func dumpsOf(r *heaplog.Reader) (got []string) {
	for d, err := range r.Dumps() {
		switch {
		case err != nil:
			got = append(got, "error: "+err.Error())
		default:
			got = append(got, fmt.Sprintf("%s %d %v", d.Name, d.Total.Bytes, d.Complete()))
		}
	}
	return got
}

// three is a log of three dumps, of 1, 2 and 3 bytes.
const three = "~h#begin 1\n~b#size: 1, 0x10\n~h#end 1\n~h#begin 2\n~b#size: 2, 0x10\n~h#end 2\n~h#begin 3\n~b#size: 3, 0x10\n~h#end 3\n"

func TestSelect(t *testing.T) {
	for _, c := range []struct {
		from, to int
		dumps    string
	}{
		{1, 1, "dump 1 1 true"},
		{2, 3, "dump 2 2 true, dump 3 3 true"},
		{2, -1, "dump 2 2 true, dump 3 3 true"},
		{-1, -1, "dump 3 3 true"},
		{4, 9, "error: Select: 4: the log has 3"},
	} {
		for name, in := range map[string]io.Reader{"memory": strings.NewReader(three), "pipe": iotest.HalfReader(strings.NewReader(three))} {
			if got := strings.Join(dumpsOf(open(t, in, heaplog.Select(c.from, c.to))), ", "); got != c.dumps {
				t.Errorf("dumps %d to %d from %s: %s, want %s", c.from, c.to, name, got, c.dumps)
			}
		}
	}
	for _, bad := range [][2]int{{0, 1}, {2, 1}, {-1, 3}, {-2, -1}} {
		if _, err := heaplog.Open(t.Context(), heaplog.Stream(strings.NewReader(three), "log"), heaplog.Select(bad[0], bad[1])); err == nil {
			t.Errorf("Select%v: no error", bad)
		}
	}
}

// Before an error, the unfinished dump is yielded; after one of reading, the next log follows.
func TestUnfinishedDumps(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name, first string
		want        string
	}{
		{"in a dump", "~h#begin 1\n~b#size: 1, 0x10\n", "dump 1 1 false, error: first: broken, dump 2 3 true"},
		{"without marks", "~b#size: 1, 0x10\n", "dump 1 1 false, error: first: broken, dump 2 3 true"},
		{"after a dump", "~h#begin 1\n~b#size: 1, 0x10\n~h#end 1\n", "dump 1 1 true, error: first: broken, dump 2 3 true"},
		{"before any", "hello\n", "error: first: broken, second 3 true"},
	} {
		r, err := heaplog.Open(t.Context(), heaplog.Stream(io.MultiReader(strings.NewReader(c.first), iotest.ErrReader(broken)), "first"),
			heaplog.Stream(strings.NewReader("~b#size: 3, 0x10\n"), "second"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(dumpsOf(r), ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		r.Close()
	}
	// A loop that ends early gets nothing more, and the reader can be used again.
	r := open(t, strings.NewReader(three))
	for range 2 {
		for d := range r.Dumps() {
			if d.Total.Bytes == 2 {
				break
			}
		}
	}
	if got := strings.Join(dumpsOf(r), ", "); got != "dump 1 1 true, dump 2 2 true, dump 3 3 true" {
		t.Errorf("again: %s", got)
	}
}

func TestNoRecord(t *testing.T) {
	for log, want := range map[string]string{
		"":                           "log: no records in 0 bytes: looked for ~m#, ~b#, ~p#, ~e#, ~v#, and heap traces of other systems",
		"text\n":                     "log: no records in 5 bytes: looked for ~m#, ~b#, ~p#, ~e#, ~v#, and heap traces of other systems",
		"~m#AAA=\n":                  "the only record could not be read",
		"~m#AAA=\n~m#AAA=\n":         "none of 2 records could be read",
		"~h#begin 1\n~h#end 1\n":     "1 dump, and it is empty: does malloc reach the library (-Wl,--wrap=malloc and so on)?",
		"~h#begin 1 n=3\n~h#end 1\n": "1 dump, but none of the records that they announce",
		"~h#begin 1\n~h#total allocs=4\n~h#end 1\n~h#begin 2\n~h#end 2\n": "2 dumps, all empty",
	} {
		var last error
		for _, err := range open(t, strings.NewReader(log)).Items() {
			last = err
		}
		if last == nil || !errors.Is(last, heaplog.ErrNoRecord) || last.Error() != want {
			t.Errorf("%q: %v, want %s", log, last, want)
		}
	}
}

// What dumps lack is in notes, and in the dumps.
func TestLosses(t *testing.T) {
	r := open(t, strings.NewReader("~h#begin 1 n=3 b=10\n~b#size: 1, 0x10\n~m#AAA=\n"+readme[:20]+"\n~h#lost n=7\n~h#end 1\n~h#begin 2 n=2\n"+readme+"\n"))
	var losses []profile.Loss
	for d, err := range r.Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, d.Loss)
	}
	if want := []profile.Loss{{Unreadable: 1, Cut: 1, NoSize: 1}, {}}; !slices.Equal(losses, want) {
		t.Errorf("losses %+v, want %+v", losses, want)
	}
	for _, want := range []string{
		"1 record unreadable (empty), the first at log:3 (offset 37): ", "1 record cut short, the first at log:4",
		"dump 1 (line 1): 2 of 3 records: lines were lost", "dump 1: 1 record cut before the size, counted as 0 bytes",
		"dump 2 (line 7): 1 of 2 records, no ~h#end: it was cut", "the recorder dropped 7 events: sums are too low or too high",
	} {
		if !strings.Contains(notes(r), want) {
			t.Errorf("no note %q in\n%s", want, notes(r))
		}
	}
	r = open(t, strings.NewReader("~b#size: 1, 0x10\n~b#size: 1, 0x20\n~b#size: 18446744073709551615, 0x30\n"), heaplog.MaxPaths(1))
	for d, err := range r.Dumps() {
		if err != nil || d.Loss.OtherPaths != 2 || !d.Loss.Saturated {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if text := notes(r); !strings.Contains(text, "2 records of call paths beyond the limit") || !strings.Contains(text, "sums over 2^64-1") {
		t.Errorf("notes %s", text)
	}
}

// Call paths are found anew where the memory map changes, though the records are the same.
func TestMapsOverTime(t *testing.T) {
	first, second := "{{{reset}}}{{{module:0:a:elf:}}}{{{mmap:0x400000:0x100000:load:0:rx:0x0}}}", "{{{reset}}}{{{module:0:b:elf:}}}{{{mmap:0x400000:0x100000:load:0:rx:0x1000}}}"
	log := first + "\n" + strings.Repeat(readme+"\n", 3) + second + "\n" + strings.Repeat(readme+"\n", 3) + first + "\n" + readme + "\n"
	r := open(t, strings.NewReader(log))
	var got []string
	for it, err := range r.Items() {
		if err != nil {
			t.Fatal(err)
		}
		if len(it.Allocs) > 0 {
			got = append(got, it.Allocs[0].Stack[0].String())
		}
		if len(got) == 4 && r.Locate(0x400010).String() != "b+0x1010" {
			t.Errorf("after record 4, 0x400010 is %v", r.Locate(0x400010))
		}
	}
	want := "a+0x6651 a+0x6651 a+0x6651 b+0x7651 b+0x7651 b+0x7651 a+0x6651"
	if strings.Join(got, " ") != want || r.Summary().Boots != 3 {
		t.Errorf("%s, want %s; %d boots", strings.Join(got, " "), want, r.Summary().Boots)
	}
}

// demo compiles the example program, position-independent, and returns it and its log.
func demo(t *testing.T) (exe, log string) {
	t.Helper()
	cmdtest.Need(t, "cc")
	exe = filepath.Join(t.TempDir(), "demo")
	if out, err := exec.Command("cc", "-g", "-O2", "-fPIE", "-pie", "-o", exe, "../../examples/heaplog/heaplog.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(exe, "4").Output()
	if err != nil {
		t.Fatal(err)
	}
	return exe, string(out)
}

// The load base of a program is inferred from the log, from a file, memory or a pipe, and each
// boot has its own.
func TestInferredBases(t *testing.T) {
	exe, log := demo(t)
	_, other := demo(t) // the same program elsewhere
	both := "~h#boot\n" + log + "~h#boot\n" + other
	named := func(r *heaplog.Reader) (n, all int) {
		for it, err := range r.Items() {
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range it.Allocs {
				all++
				if slices.ContainsFunc(a.Stack, func(a symbol.Addr) bool { return a.String() == "main" }) {
					n++
				}
			}
		}
		return n, all
	}
	for name, in := range map[string]io.Reader{
		"memory": strings.NewReader(log), "pipe": iotest.HalfReader(strings.NewReader(log)), "two boots": strings.NewReader(both),
		"two boots in a pipe": iotest.HalfReader(strings.NewReader(both)),
	} {
		r := open(t, in, heaplog.Exe(exe))
		n, all := named(r)
		if n == 0 || n != all || !strings.Contains(notes(r), "demo: inferred load base 0x") {
			t.Errorf("%s: %d of %d call paths have main; %s", name, n, all, notes(r))
		}
		var first int
		for d, err := range r.Dumps() {
			switch {
			case err != nil && !strings.Contains(name, "pipe"):
				t.Errorf("%s: %v", name, err)
			case err == nil && d.Index == 0:
				first = d.Len()
			case err == nil && d.Len() > 2*first:
				t.Errorf("%s: boots do not share call paths: %d, then %d", name, first, d.Len())
			}
		}
	}
	// Too little evidence is no base, and that is said.
	r := open(t, strings.NewReader(readme+"\n"), heaplog.Exe(exe))
	if n, _ := named(r); n != 0 || !strings.Contains(notes(r), "demo: cannot infer the load base: ") {
		t.Errorf("one record: %d with main; %s", n, notes(r))
	}
}

// A log that is followed is first read as far as it goes: its first records have names, too. If it does not have
// enough addresses yet, the base is inferred as soon as it does.
func TestInferredBasesOfAFollowedLog(t *testing.T) {
	exe, log := demo(t)
	for name, there := range map[string]int{"all": len(log), "nothing": 0} {
		path := filepath.Join(t.TempDir(), "live.log")
		if err := os.WriteFile(path, []byte(log[:there]), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		r, err := heaplog.Open(ctx, heaplog.Follow(path), heaplog.Exe(exe))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var outer []string
		for it, err := range r.Items() {
			switch {
			case err != nil && !errors.Is(err, context.Canceled):
				t.Fatal(err)
			case err != nil:
			case it.Kind == recording.KindIdle && there < len(log):
				if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
					t.Fatal(err)
				}
				there = len(log)
			case it.Kind == recording.KindIdle && len(outer) > 0:
				stop()
			case len(it.Allocs) > 0:
				outer = append(outer, it.Allocs[0].Stack[len(it.Allocs[0].Stack)-1].String())
			}
		}
		if len(outer) == 0 {
			t.Fatalf("%s: no record; %s", name, notes(r))
		}
		first, last, late := outer[0], outer[len(outer)-1], strings.Contains(notes(r), "no load base was known before "+path+":")
		if strings.HasPrefix(last, "0x") || (name == "all") == (late || strings.HasPrefix(first, "0x")) {
			t.Errorf("%s: the first record ends in %q, the last in %q; %s", name, first, last, notes(r))
		}
	}
}

// In a stream, the load base is known only after some addresses. Dumps that began before have call paths without
// names, and are not compared with those that have them.
func TestRateOfAStream(t *testing.T) {
	exe, _ := demo(t)
	out, err := exec.Command(exe, "12").Output()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	n := 0
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "started") {
			if n++; n > 1 {
				fmt.Fprintf(&log, "~h#end %d\n", n-1)
			}
			fmt.Fprintf(&log, "~h#begin %d\n", n)
		}
		log.WriteString(line)
	}
	fmt.Fprintf(&log, "~h#end %d\n", n)
	lines := strings.SplitAfter(log.String(), "\n")
	in, w := io.Pipe()
	r, err := heaplog.Open(t.Context(), heaplog.Stream(in, "port"), heaplog.Exe(exe), heaplog.Refresh(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sent := make(chan bool)
	go func() {
		io.WriteString(w, strings.Join(lines[:5], ""))
		<-sent
		io.WriteString(w, strings.Join(lines[5:], ""))
		w.Close()
	}()
	var dumps []*profile.Dump
	for d, err := range r.Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		if dumps = append(dumps[:d.Index], d); d.Index == 0 {
			select {
			case sent <- true:
			default:
			}
		}
	}
	p, err := profile.New(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	found := growth.Judge(p, growth.Options{})
	var rates []string
	for _, r := range found.Rows {
		if r.Rate != 0 {
			in := slices.IndexFunc(r.Stack(), func(s profile.Site) bool { return s.Func == "connection" })
			rates = append(rates, fmt.Sprintf("%t %.0f", in >= 0, r.Rate))
		}
	}
	if d := found.Dumps[0]; d.Used || d.Reason != "before the load base was known" || found.Used != len(dumps)-1 || strings.Join(rates, ", ") != "true 122880" {
		t.Errorf("first dump %+v, %d of %d used, rates %q; %s", found.Dumps[0].Reason, found.Used, len(dumps), rates, notes(r))
	}
}

// A live log yields the open dump again and again, and a dump with its end at once.
func TestRefresh(t *testing.T) {
	in, w := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, err := heaplog.Open(ctx, heaplog.Stream(in, "port"), heaplog.Refresh(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go io.WriteString(w, "~h#begin 1\n~b#size: 1, 0x10\n~h#end 1\n~h#begin 2\n~b#size: 2, 0x10\n")
	step, seen := 0, map[string]bool{}
	var last error
	for d, err := range r.Dumps() {
		if last = err; err != nil {
			continue
		}
		state := fmt.Sprintf("%d %d %v %v", d.Index, d.Total.Bytes, d.Ended, d.Complete())
		seen[state] = true
		switch {
		case state == "1 2 false false" && step == 0:
			step++
			go io.WriteString(w, "~b#size: 3, 0x20\n~h#end 2\n")
		case state == "1 5 true true":
			step++
			stop()
		}
	}
	if !seen["0 1 true true"] || step != 2 || !errors.Is(last, context.Canceled) {
		t.Errorf("saw %v, error %v", seen, last)
	}
}

// An interrupt ends a pipe as its end would, and leaves an error for each log that was not
// read to its end.
func TestInterrupt(t *testing.T) {
	in, w := io.Pipe()
	defer w.Close()
	ctx, stop := context.WithCancel(t.Context())
	r, err := heaplog.Open(ctx, heaplog.Stream(in, "port"), heaplog.Stream(strings.NewReader(readme), "next"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		io.WriteString(w, "~b#size: 1, 0x10\n~b#size: 2, 0x")
		stop()
	}()
	var got []string
	for d, err := range r.Dumps() {
		if err == nil {
			got = append(got, fmt.Sprint(d.Total.Bytes, d.Complete()))
		} else {
			got = append(got, err.Error())
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if want := "3 true, next: interrupted before its end, context canceled"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %s", got, want)
	}
}

// A map in which a name controls a terminal cannot do so, and bad markup is a note.
func TestBadMarkup(t *testing.T) {
	r := open(t, strings.NewReader("{{{module:0:a\x1b[2J:elf:}}}{{{mmap:0x400000:0x100000:load:0:rx:0x0}}}\n{{{mmap:x}}}\n{{{mmap:y}}}\n"+readme+"\n"))
	for it, err := range r.Items() {
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range it.Allocs {
			if s := fmt.Sprint(a.Stack); strings.Contains(s, "\x1b") {
				t.Errorf("%q", s)
			}
		}
	}
	if text := notes(r); !strings.Contains(text, "markup {{{mmap:x}}}") || !strings.Contains(text, "2 elements not understood") {
		t.Errorf("notes %s", text)
	}
}

func TestBadOptions(t *testing.T) {
	log := heaplog.Stream(strings.NewReader(readme), "log")
	dir := t.TempDir()
	elf := filepath.Join(dir, "none")
	for name, options := range map[string][]heaplog.Option{
		"no input":                           {},
		"Exe: " + elf:                        {log, heaplog.Exe(elf)},
		"MaxPaths: -1":                       {log, heaplog.MaxPaths(-1)},
		"Refresh: -1ns":                      {log, heaplog.Refresh(-1)},
		"GroupBy: 99":                        {log, heaplog.GroupBy(99)},
		"Machine: 99":                        {log, heaplog.Machine(99)},
		"Select: 2 to 1":                     {log, heaplog.Select(2, 1)},
		"Maps: open " + elf:                  {log, heaplog.Maps(elf)},
		"Files: open " + elf:                 {heaplog.Files(elf)},
		"Stream: \"x\"":                      {heaplog.Stream(nil, "x"), {}},
		"Files: " + dir + ": is a directory": {heaplog.Files(dir)},
		"Follow: stat " + elf:                {heaplog.Follow(elf)},
	} {
		r, err := heaplog.Open(t.Context(), options...)
		if err == nil {
			r.Close()
		}
		var e *heaplog.OptionError
		if err == nil || !strings.HasPrefix(err.Error(), name) || errors.As(err, &e) != (name != "no input") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	// A reader that was not used has a summary, too.
	r := open(t, bytes.NewReader(nil))
	if s := r.Summary(); s.Bytes != 0 || s.Readable() != 0 {
		t.Errorf("%+v", s)
	}
}

// A Reader that Open did not return, and a pass within a pass, have errors and do not panic.
func TestMisuse(t *testing.T) {
	var none context.Context
	if r, err := heaplog.Open(none, heaplog.Stream(strings.NewReader(readme), "log")); err == nil {
		t.Errorf("a nil context: %v", r)
	}
	var zero heaplog.Reader
	for _, err := range zero.Dumps() {
		if err == nil {
			t.Error("the zero Reader has a dump")
		}
	}
	if s := zero.Summary(); zero.Close() != nil || zero.Locate(1).PC != 1 || zero.Replay() != nil || s.Bytes != 0 {
		t.Error("the zero Reader has data")
	}
	r := open(t, strings.NewReader(readme+"\n"))
	n := 0
	for _, err := range r.Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		for it, err := range r.Items() {
			if n++; err == nil {
				t.Errorf("an item of a pass within a pass: %v", it)
			}
		}
	}
	if got := dumpsOf(r); n != 1 || len(got) != 1 {
		t.Errorf("%d errors; then dumps %q", n, got)
	}
}

// endless is a reader that is not a Seeker, and never ends.
type endless struct{ io.Reader }

func (e endless) Read(p []byte) (int, error) { return e.Reader.Read(p) }

// A loop may end at any item, also before the log is recognized; Close ends what reads ahead, and
// later passes.
func TestBreakAndClose(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 50 {
		more, _ := io.Pipe() // without a writer: it stays silent
		r := open(t, endless{io.MultiReader(strings.NewReader(readme+"\n"), more)}, heaplog.Refresh(time.Millisecond))
		for range r.Items() {
			break
		}
		for range r.Dumps() {
			break
		}
		more.Close()
		r.Close()
		for _, err := range r.Items() {
			if err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("an item of a closed Reader, %v", err)
			}
		}
	}
	for range 100 {
		if runtime.NumGoroutine() <= before+5 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// A log that is cut off does not affect the next one, and its error comes once, also if the logs
// are read twice.
func TestDamagedLogBefore(t *testing.T) {
	var list strings.Builder // newest first: its dumps are told apart in a second pass
	for n := 10; n < 13; n++ {
		list.WriteString("heap:\n")
		for i := n; i >= 0; i-- {
			fmt.Fprintf(&list, "~b#size: 64, %#x\n", 0x401000+16*i)
		}
	}
	dir := t.TempDir()
	packed := gzipped(t, []byte(strings.Repeat(readme+"\n", 5)))
	cut, whole, again := filepath.Join(dir, "cut.gz"), filepath.Join(dir, "whole.log"), filepath.Join(dir, "list.log")
	for path, data := range map[string]string{cut: string(packed[:len(packed)-9]), whole: readme + "\n", again: list.String()} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := heaplog.Open(t.Context(), heaplog.Files(cut, whole, again))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	for d, err := range r.Dumps() {
		var read *heaplog.ReadError
		switch {
		case errors.As(err, &read):
			got = append(got, "error of "+filepath.Base(read.Name))
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, fmt.Sprintf("%s %d %v", filepath.Base(d.File), d.Records, d.Complete()))
		}
	}
	want := []string{"cut.gz 5 false", "error of cut.gz", "whole.log 1 true", "list.log 11 true", "list.log 12 true", "list.log 13 true"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if n := r.Summary().Readable(); n != 5+1+36 {
		t.Errorf("%d records", n)
	}
}

// A device that is silent after it has begun to boot is waited for, also if a load base is to be inferred.
func TestInferredBasesOfASilentDevice(t *testing.T) {
	exe, log := demo(t)
	in, w := io.Pipe()
	go func() {
		io.WriteString(w, "booting\n")
		time.Sleep(300 * time.Millisecond)
		io.WriteString(w, log)
		w.Close()
	}()
	r := open(t, in, heaplog.Exe(exe))
	last := ""
	for it, err := range r.Items() {
		if err != nil {
			t.Fatal(err)
		}
		if len(it.Allocs) > 0 {
			last = it.Allocs[0].Stack[len(it.Allocs[0].Stack)-1].String()
		}
	}
	if last == "" || strings.HasPrefix(last, "0x") {
		t.Errorf("the last record ends in %q; %s", last, notes(r))
	}
}
