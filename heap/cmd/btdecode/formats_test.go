package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// What the example holds, by its source: 30 connections of 4096 bytes, and 12
// options: an entry of 24 bytes, a name and a value each.
func exampleTruth() (conn, entries, names, values int64) {
	conn, entries = 30*4096, 12*24
	for i := range 12 {
		names += int64(len("option"+strconv.Itoa(i)) + 1)
		values += int64(len("value "+strconv.Itoa(i*i)) + 1)
	}
	return conn, entries, names, values
}

// onlyEncoded is the log without the ~b# lines that say each record twice.
func onlyEncoded(log string) string {
	var b strings.Builder
	for l := range strings.Lines(log) {
		if !strings.HasPrefix(l, "~b#") {
			b.WriteString(l)
		}
	}
	return b.String()
}

// jsonRecord is what the tests read of an object of --format jsonl.
type jsonRecord struct {
	File   string
	Line   int64
	Offset int64
	Size   *uint64
	Frames []struct {
		PC, State, Module, Own string
		Source                 []struct {
			Function, File string
			Line           int
		}
	}
	Error, Reason, Text string
}

func TestJSONL(t *testing.T) {
	exe, log := example(t)
	bad := "~m#AAA=\n"
	out, _, code := command(bad+onlyEncoded(log), "-q", "-e", exe, "-F", "jsonl")
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 67 {
		t.Fatalf("%d objects, want 67", len(lines))
	}
	var r jsonRecord
	if err := json.Unmarshal([]byte(lines[0]), &r); err != nil || r.Reason != "empty" || r.Text != "~m#AAA=" || r.Error == "" || r.Size != nil || r.Line != 1 {
		t.Errorf("%v: %s", err, lines[0])
	}
	var total uint64
	for i, l := range lines[1:] {
		r := jsonRecord{}
		if err := json.Unmarshal([]byte(l), &r); err != nil || r.Size == nil {
			t.Fatalf("%v: %s", err, l)
		}
		total += *r.Size
		if want := int64(i + 3); r.Line != want { // after the bad record and a line of text
			t.Errorf("line %d, want %d", r.Line, want)
		}
		f := r.Frames[0]
		if f.State != "exact" || f.Module != exe || len(f.Source) == 0 || f.Source[0].Function != "heap_alloc" || f.Source[0].Line == 0 {
			t.Fatalf("frame 0: %+v", f)
		}
	}
	conn, entries, names, values := exampleTruth()
	if total != uint64(conn+entries+names+values) {
		t.Errorf("%d bytes in all, want %d", total, conn+entries+names+values)
	}
	// Where nothing is looked up, states still tell what can be trusted.
	out, _, _ = command(line(t, codec.MachineWrap64, 8, wide...), "-q", "-F", "jsonl")
	r = jsonRecord{}
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Frames) != 2 || r.Frames[0].State != "lost" || r.Frames[1].State != "exact" {
		t.Errorf("%v: %s, want frame 0 lost and frame 1 exact", err, out)
	}
}

// A dump of a lossy encoder, by the ELF file alone, from a pipe.
func TestLostBitsFromAPipe(t *testing.T) {
	exe, log := example(t)
	var lossy strings.Builder
	var s codec.Stack
	for l := range strings.Lines(log) {
		if strings.HasPrefix(l, "~b#") {
			if err := codec.ParseDecoded(&s, []byte(l)); err != nil {
				t.Fatal(err)
			}
			lossy.WriteString(line(t, codec.MachineWrap64, s.Size, s.PCs...) + "\n")
		}
	}
	want, _, _ := command(onlyEncoded(log), "-q", "-e", exe, "-F", "jsonl")
	got, errs, code := command(lossy.String(), "-e", exe, "-F", "jsonl")
	if code != 0 || !strings.Contains(errs, "of which the upper bits are not known") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	if len(a) != len(b) || len(a) < 60 {
		t.Fatalf("%d objects, want %d", len(b), len(a))
	}
	same := 0
	for i := range a[:len(a)-1] {
		var w, g jsonRecord
		json.Unmarshal([]byte(a[i]), &w)
		json.Unmarshal([]byte(b[i]), &g)
		for n := range w.Frames {
			switch {
			case w.Frames[n].Own == "" && g.Frames[n].State != "lost":
				t.Errorf("frame %d of the C library is %s", n, g.Frames[n].State)
			case w.Frames[n].Own == "":
			case g.Frames[n].State != "inferred" || g.Frames[n].Own != w.Frames[n].Own:
				t.Fatalf("record %d, frame %d: %+v, want %+v", i, n, g.Frames[n], w.Frames[n])
			default:
				same++
			}
		}
	}
	if same < 200 {
		t.Errorf("only %d frames compared", same)
	}
}

// Told the base, nothing is to be found: a single record is enough.
func TestLostBitsWithToldBase(t *testing.T) {
	exe, log := example(t)
	var s codec.Stack
	for l := range strings.Lines(log) {
		if strings.HasPrefix(l, "~b#") {
			if err := codec.ParseDecoded(&s, []byte(l)); err != nil {
				t.Fatal(err)
			}
		}
	}
	rec := line(t, codec.MachineWrap64, s.Size, s.PCs...)
	out, errs, _ := command(rec, "-e", exe)
	// Five of the seven addresses are the program's, two are libc's.
	if !strings.Contains(out, "[lost: 0-6]") || !strings.Contains(errs, "cannot infer the load base: at the best one, 5 of the 5 addresses in its code follow a call, at the next best, ") {
		t.Errorf("%s%s: a base from one record", out, errs)
	}
	// Where main's frame is tells the base: the log of many records finds it.
	_, errs, _ = command(log, "-e", exe)
	m := regexp.MustCompile(`load base (0x[0-9a-f]+)`).FindStringSubmatch(errs)
	if m == nil {
		t.Fatalf("no load base in %q", errs)
	}
	out, errs, _ = command(rec, "-e", exe+"@"+m[1])
	want := string(codec.AppendDecoded(nil, &s))
	got, below, _ := strings.Cut(out, "\n")
	// The two frames of the C library stay as they were read.
	g, w := strings.Fields(got), strings.Fields(want)
	if !strings.HasPrefix(below, "   [inferred: 0-3,6] [lost: 4-5]\n") || len(g) != len(w) {
		t.Fatalf("%q, %s", out, errs)
	}
	for i := range g {
		if lost := i == 6 || i == 7; (g[i] == w[i]) == lost {
			t.Errorf("word %d: %s, truth %s, lost %v", i, g[i], w[i], lost)
		}
	}
	if !strings.Contains(out, "main at ") {
		t.Errorf("no main in\n%s", out)
	}
}

// The frames of the records in a line are written once, below it, wherever the reader
// cuts the log.
func TestFramesBelowTheirLine(t *testing.T) {
	const pc = 0x401234
	record := line(t, codec.MachineExact64, 24, pc)
	filler := strings.Repeat("[12:00:01] some other text of a device\n", 4000)
	part := record + "\n" + filler
	log := "{{{reset}}}\n{{{module:0:app:elf:00}}}\n{{{mmap:0x400000:0x10000:load:0:rx:0}}}\n" + filler +
		strings.Repeat(strings.Repeat(part, 10)+record+" } {{ not markup\n", 3) + strings.Repeat(part, 10)
	stdout, stderr, code := command("", "--passthrough", tempFile(t, "log", log))
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if n := strings.Count(stdout, "\n   0  0x401234 "); n != 43 {
		t.Errorf("the one frame of 43 records stands %d times", n)
	}
	lines := strings.Split(stdout, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "~b#size: 24, 0x401234") && !strings.HasPrefix(lines[i+1], "   0  0x401234 ") {
			t.Fatalf("line %d: %q, and below it %q", i+1, l, lines[i+1])
		}
	}
}
