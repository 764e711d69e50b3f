package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// What the example holds, by its source: 30 connections of 4096 bytes, and 12
// options: an entry of 24 bytes, a name and a value each.
func heaplogTruth() (conn, entries, names, values int64) {
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

const foldExample = "^(heap_alloc|copy)$"

// pprof's own tool reads the profile and says what the example's source says.
func TestPprof(t *testing.T) {
	cmdtest.Need(t, "go")
	exe, log := heaplog(t)
	out := filepath.Join(t.TempDir(), "heap.pb.gz")
	text, errs, code := command(onlyEncoded(log), "-e", exe, "-F", "pprof", "-o", out, "--hide", foldExample)
	if code != 0 || text != "" {
		t.Fatalf("exit code %d, %s%s", code, text, errs)
	}
	conn, entries, names, values := heaplogTruth()
	total := conn + entries + names + values
	top := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", append(append([]string{"tool", "pprof", "-top", "-nodefraction=0", "-symbolize=none"}, args...), out)...)
		b, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		return string(b)
	}
	got := top("-unit=B") // inuse_space unless told otherwise
	for fn, flat := range map[string]int64{"connection": conn, "parse_line": entries + names + values} {
		if want := regexp.MustCompile(`(?m)^\s*` + strconv.FormatInt(flat, 10) + `B\s.*\s` + fn + `( \(inline\))?$`); !want.MatchString(got) {
			t.Errorf("no line for %s with %d bytes in\n%s", fn, flat, got)
		}
	}
	if !strings.Contains(got, "Type: inuse_space") || !strings.Contains(got, "of "+strconv.FormatInt(total, 10)+"B total") {
		t.Errorf("want inuse_space and %d bytes in all:\n%s", total, got)
	}
	if strings.Contains(got, "heap_alloc") {
		t.Errorf("--hide left heap_alloc:\n%s", got)
	}
	got = top("-sample_index=inuse_objects")
	if !regexp.MustCompile(`(?m)^\s*36\s.*parse_line`).MatchString(got) || !strings.Contains(got, "of 66 total") {
		t.Errorf("want 36 objects by parse_line, 66 in all:\n%s", got)
	}
}

// Mappings have build-ids, addresses are inside the call, inlined calls are lines
// of one location.
func TestPprofDetail(t *testing.T) {
	exe, log := heaplog(t)
	out, errs, code := command(onlyEncoded(log), "-e", exe, "-F", "pprof")
	if code != 0 {
		t.Fatal(errs)
	}
	p, err := profile.ParseData([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Error(err)
	}
	if p.DefaultSampleType != "inuse_space" || len(p.SampleType) != 2 ||
		p.SampleType[0].Type != "inuse_objects" || p.SampleType[0].Unit != "count" ||
		p.SampleType[1].Type != "inuse_space" || p.SampleType[1].Unit != "bytes" {
		t.Errorf("sample types %v, default %q", p.SampleType, p.DefaultSampleType)
	}
	notes, err := exec.Command("readelf", "-n", exe).Output()
	if err != nil {
		t.Skip("readelf is not installed")
	}
	id := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindSubmatch(notes)
	var m *profile.Mapping
	for _, c := range p.Mapping {
		if c.File == exe {
			m = c
		}
	}
	if m == nil || id == nil || m.BuildID != string(id[1]) || !m.HasFunctions || !m.HasLineNumbers || !m.HasInlineFrames {
		t.Fatalf("mapping %+v, want one of %s with build-id %q", m, exe, id)
	}
	// Every address in the program's mapping is one less than one in the log.
	logged := map[string]bool{}
	for _, a := range regexp.MustCompile(`0x[0-9a-f]+`).FindAllString(log, -1) {
		logged[a] = true
	}
	inside, inlined := 0, 0
	for _, l := range p.Location {
		if l.Mapping != m {
			continue
		}
		inside++
		if l.Address < m.Start || l.Address >= m.Limit {
			t.Errorf("address %#x is not in its mapping %#x-%#x", l.Address, m.Start, m.Limit)
		}
		if !logged[hex(l.Address+1)] {
			t.Errorf("address %#x: %#x was not logged", l.Address, l.Address+1)
		}
		if len(l.Line) > 1 {
			inlined++
		}
	}
	if inside < 8 || inlined < 1 {
		t.Errorf("%d locations in the program, %d with inlined calls", inside, inlined)
	}
}

// The program is the first mapping, whatever allocated first.
func TestPprofOfMaps(t *testing.T) {
	out, errs, code := command("", "-F", "pprof", "--sysroot", "none", "--maps", capturePath("git00.maps"), capturePath("git00.log.gz"))
	if code != 0 {
		t.Fatal(errs)
	}
	p, err := profile.ParseData([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	m := p.Mapping[0]
	if m.File != "/usr/bin/git" || m.Start != 0x5556485af000 || m.Limit != 0x55564883d000 || m.Offset != 0x1e000 {
		t.Errorf("first mapping %+v, want git's code", m)
	}
	n := int64(0)
	for _, s := range p.Sample {
		n += s.Value[0]
	}
	if n != 2000 {
		t.Errorf("%d allocations, want the 2,000 of the excerpt", n)
	}
}

func TestFolded(t *testing.T) {
	exe, log := heaplog(t)
	conn, entries, names, values := heaplogTruth()
	for weight, want := range map[string][2]int64{"bytes": {conn, entries + names + values}, "count": {30, 36}} {
		out, _, code := command(onlyEncoded(log), "-q", "-e", exe, "-F", "folded", "--weight", weight, "--hide", foldExample)
		var got [2]int64
		for l := range strings.Lines(out) {
			l = strings.TrimSpace(l)
			stack, n, _ := strings.Cut(l[strings.Index(l, "_start"):], " ")
			v, err := strconv.ParseInt(n, 10, 64)
			switch {
			case err != nil:
				t.Errorf("%q: %v", l, err)
			case strings.HasSuffix(stack, ";main;serve;connection"):
				got[0] += v
			case strings.HasSuffix(stack, ";main;read_config;parse_line"):
				got[1] += v
			default:
				t.Errorf("unexpected stack %q", l)
			}
		}
		if code != 0 || got != want {
			t.Errorf("%s: %v, want %v, from\n%s", weight, got, want, out)
		}
	}
}

func TestSpeedscope(t *testing.T) {
	exe, log := heaplog(t)
	out, _, _ := command(onlyEncoded(log), "-q", "-e", exe, "-F", "speedscope")
	var f struct {
		Schema string `json:"$schema"`
		Shared struct {
			Frames []struct {
				Name, File string
				Line       int
			}
		}
		Profiles []struct {
			Type, Name string
			End        int64 `json:"endValue"`
			Samples    [][]int
			Weights    []int64
		}
	}
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatal(err)
	}
	conn, entries, names, values := heaplogTruth()
	wants := []int64{conn + entries + names + values, 66}
	if len(f.Profiles) != 2 || f.Schema != "https://www.speedscope.app/file-format-schema.json" {
		t.Fatalf("%d profiles, schema %q", len(f.Profiles), f.Schema)
	}
	for i, p := range f.Profiles {
		sum := int64(0)
		for n, w := range p.Weights {
			sum += w
			for _, at := range p.Samples[n] {
				if at < 0 || at >= len(f.Shared.Frames) {
					t.Fatalf("frame %d of %d", at, len(f.Shared.Frames))
				}
			}
			if first := f.Shared.Frames[p.Samples[n][0]].Name; first != "_start" {
				t.Errorf("outermost frame %q, want _start", first)
			}
			if last := f.Shared.Frames[p.Samples[n][len(p.Samples[n])-1]]; last.Name != "heap_alloc" || last.Line == 0 || !strings.HasSuffix(last.File, "heaplog.c") {
				t.Errorf("innermost frame %+v, want heap_alloc with its line", last)
			}
		}
		if p.Type != "sampled" || len(p.Samples) != len(p.Weights) || sum != wants[i] || p.End != wants[i] {
			t.Errorf("profile %s: %d samples, %d weights of sum %d, want %d", p.Name, len(p.Samples), len(p.Weights), sum, wants[i])
		}
	}
}

func TestTop(t *testing.T) {
	// Two sites share a caller; one recurs.
	log := line(t, codec.MachineExact32, 100, 0x1000, 0x3000, 0x9000) + "\n" +
		line(t, codec.MachineExact32, 50, 0x1000, 0x3000, 0x9000) + "\n" +
		line(t, codec.MachineExact32, 7, 0x2000, 0x3000, 0x3000, 0x9000) + "\n"
	out, _, code := command(log, "--top", "20")
	want := `157 bytes in 3 allocations, 2 call paths, 4 call sites

Flat bytes     %  Count  Cum bytes      %  Count  Call site
-------------------------------------------------------------
       150  95.5      2        150   95.5      2  0x1000
         7   4.5      1          7    4.5      1  0x2000
         0   0.0      0        157  100.0      3  0x3000
         0   0.0      0        157  100.0      3  0x9000
`
	if code != 0 || out != want {
		t.Errorf("exit code %d, got\n%swant\n%s", code, out, want)
	}
	if out, _, _ = command(log, "--top=1"); strings.Count(out, "\n") != 5 || !strings.Contains(out, "0x1000") {
		t.Errorf("--top=1:\n%s", out)
	}
}

func TestJSONL(t *testing.T) {
	exe, log := heaplog(t)
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
	conn, entries, names, values := heaplogTruth()
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
	exe, log := heaplog(t)
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
	exe, log := heaplog(t)
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
	first, _, _ := strings.Cut(out, "\n")
	got, mark, _ := strings.Cut(first, " [inferred: 0-3,6] [lost: 4-5]")
	// The two frames of the C library stay as they were read.
	g, w := strings.Fields(got), strings.Fields(want)
	if mark != "" || len(g) != len(w) {
		t.Fatalf("%q, %s", first, errs)
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

// Of the goroutines that read a log, one may leave its part to the others, inside a line:
// the frames of the records in that line are written once, below it.
func TestFramesOfAnAbandonedPart(t *testing.T) {
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
