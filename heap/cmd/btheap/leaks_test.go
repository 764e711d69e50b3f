package main

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/symbol"
)

// device is a log of n dumps, an hour apart, of a device with 200 blocks that stay, a cache, and 3
// blocks of 40 bytes more in each dump. Of each dump lost records are missing.
func device(t testing.TB, n, lost int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("~h#boot prog=fw w=32\n")
	for d := range n {
		var lines []string
		for i := range 200 {
			lines = append(lines, record(t, uint64(20+i%30), 0x401110, 0x401300, 0x401900))
		}
		for range 20 + 7*(d*5%8) {
			lines = append(lines, record(t, 64, 0x401250, 0x401510, 0x401900))
		}
		for range 10 + 3*d {
			lines = append(lines, record(t, 40, 0x401200, 0x401500, 0x401900))
		}
		fmt.Fprintf(&b, "~h#begin %d t=%d n=%d\n", d, uint64(d+1)*3_600_000_000, len(lines))
		for i, line := range lines {
			if lost == 0 || (i+d)%(len(lines)/lost) != 0 {
				b.WriteString(line)
			}
		}
		fmt.Fprintf(&b, "~h#end %d\n", d)
	}
	return b.String()
}

func TestLeaks(t *testing.T) {
	clean, lossy := device(t, 12, 0), device(t, 12, 5)
	log, lossyLog := logFile(t, "fw.log", clean), logFile(t, "lossy.log", lossy)
	exit := logFile(t, "exit.log", clean+"~h#begin 12 t=46800000000 n=1 why=exit\n"+record(t, 20, 0x401110)+"~h#end 12\n")
	boots := logFile(t, "boots.log", device(t, 6, 0)+device(t, 6, 0))
	untimed := logFile(t, "untimed.log", regexp.MustCompile(` t=\d+`).ReplaceAllString(clean, ""))
	sure := logFile(t, "sure.log", device(t, 30, 0))
	sureUntimed := logFile(t, "sure-untimed.log", regexp.MustCompile(` t=\d+`).ReplaceAllString(device(t, 30, 0), ""))
	one := logFile(t, "one.log", device(t, 1, 0))
	announced := 0
	for _, m := range regexp.MustCompile(` n=(\d+)`).FindAllStringSubmatch(lossy, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		announced += n
	}
	missing := fmt.Sprintf("%.1f %% of the blocks are missing", 100*(1-float64(strings.Count(lossy, "~m#"))/float64(announced)))
	path := []string{"    0x401200\n    0x401500\n    0x401900\n"}
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
		errs string
	}{
		{"a leak", []string{log}, 0, append([]string{"1 leak in 12 dumps over 11 h\n\nleak, N %  +120 bytes per hour (118 to 122)\n  ▁▁▂▂▃▄▄▅▆▆▇█  10 → 43 blocks, 400 → 1,720 bytes\n"}, path...), ""},
		{"with lost lines", []string{lossyLog}, 0, append([]string{"1 leak in 12 dumps over 11 h\n\nleak, ", "+1"}, append(path, missing)...), "225 of 230 records: lines were lost (and 11 more notes: -v)\n"},
		{"with an exit", []string{exit}, 0, append([]string{"1 leak in 12 dumps"}, append(path, "left out: dump 13 (written at the exit of the program)")...), ""},
		{"of two boots", []string{boots}, 0, append([]string{"1 leak in 12 dumps of 2 boots over 10 h", "2 boots"}, path...), ""},
		{"of two logs", []string{log, boots}, 0, append([]string{"1 leak in 24 dumps of 3 boots over 21 h"}, path...), "btheap: 2 logs, in the order given: neither dates in lines nor numbers in names tell it"},
		{"without times", []string{untimed}, 0, []string{"1 leak in 12 dumps\n\nleak, N %  +120 bytes per dump"}, ""},
		{"exhaustion as the allocator says", []string{logFile(t, "heap.log", strings.ReplaceAll(clean, "~h#end", "~h#heap size=65536 free=12000 largest=9000 min=11000\n~h#end"))}, 0, []string{"free 12,000 bytes: exhausted in 4.17 days", "at +120 bytes"}, ""},
		{"exhaustion", []string{"--heap", "16K", log}, 0, []string{"free 3,448 bytes: exhausted in 28.7 h"}, ""},
		{"a limit that is kept", []string{"--fail-over", "121/h", sure}, 0, nil, ""},
		{"a limit that is not", []string{"--fail-over", "119/h", sure}, 1, nil, "leaks +120 bytes per hour, more than 119/h (--fail-over)"},
		{"a limit per dump", []string{"--fail-over", "119/dump", sureUntimed}, 1, nil, "per dump, more than 119/dump"},
		{"a limit per day", []string{"--fail-over", "3K/day", log}, 0, nil, ""},
		{"a limit that needs times", []string{"--fail-over", "1K/h", untimed}, 2, nil, "the dumps have no times: give SIZE/dump"},
		{"no rate", []string{"--fail-over", "1K", log}, 2, nil, `--fail-over "1K", expected SIZE/UNIT`},
		{"no size", []string{"--heap", "big", log}, 2, nil, `--heap "big": expected a number of bytes`},
		{"a leak that is known", []string{"--ignore", "^0x401200$", log}, 0, []string{"none above "}, ""},
		{"one dump", []string{one}, 0, []string{"1 dump: it tells what holds the memory, and more of the same boot,\nsome time apart, what leaks\n", "the largest call paths:\n"}, "one dump, expected two or more"},
		{"one dump and a limit", []string{"--fail-over", "1K/dump", one}, 2, nil, "one dump, expected two or more"},
		{"three dumps", []string{logFile(t, "three.log", device(t, 3, 0))}, 0, []string{"in 3 dumps"}, ""},
	} {
		checkSession(t, c.name, append([]string{"leaks"}, c.args...), c.code, c.says, c.errs)
	}
}

// late is a log of two boots of 20 dumps, an hour apart. In the second one, from its 8th dump on,
// 2 blocks of 37 bytes leak in each hour. 50 other blocks stay.
func late(t testing.TB) string {
	var b strings.Builder
	for boot := range 2 {
		fmt.Fprintf(&b, "~h#boot prog=fw w=32 fw=1.%d\n", boot+1)
		for d := range 20 {
			n := 5
			if boot == 1 && d > 7 {
				n += 2 * (d - 7)
			}
			fmt.Fprintf(&b, "~h#begin %d t=%d n=%d\n", d, uint64(d+1)*3_600_000_000, 50+n)
			b.WriteString(strings.Repeat(record(t, 100, 0x401110, 0x401900), 50))
			b.WriteString(strings.Repeat(record(t, 37, 0x401200, 0x401900), n))
			fmt.Fprintf(&b, "~h#end %d\n", d)
		}
	}
	return b.String()
}

// The rate, and with it the time until the heap is full, are those of the present, not a mean
// over boots that did not leak.
func TestLeaksSince(t *testing.T) {
	log := logFile(t, "late.log", late(t))
	// The last dump holds 50 × 100 + 29 × 37 = 6,073 bytes: 740 are free, 10 hours at 74 bytes per hour.
	checkSession(t, "a leak that begins in boot 2", []string{"leaks", "--heap", "6813", log}, 0, []string{
		"free 740 bytes: exhausted in 10 h", "+74 bytes per hour",
		"leak, ", "  +74 bytes per hour", "5 → 29 blocks, 185 → 1,073 bytes",
		"  since about dump 28, boot 2, 8 h after its start\n  firmware 1.1: none above 1.9 bytes per hour; firmware 1.2: ",
		"\n    0x401200\n",
	}, "")
	checkSession(t, "the summary", []string{log}, 0, []string{"\nleak, ", "+74 bytes per hour", "0x401200", "\n  since about dump 28, boot 2, 8 h after its start\n  firmware 1.1: none above"}, "")
	checkSession(t, "a heap without its unit", []string{"leaks", "--heap", "6", log}, 2, nil,
		"--heap 6: dump 1 holds 5,185 bytes, expected the size of the whole heap, such as 48K")
}

// A path that grows since the middle of the only boot is listed with its rate, its begin, and what decides.
func TestLeaksUndecided(t *testing.T) {
	log := late(t)
	log = log[strings.LastIndex(log, "~h#boot"):]
	checkSession(t, "one boot", []string{"leaks", "--heap", "6813", logFile(t, "late.log", log)}, 0, []string{
		"cannot tell of 1 call path", "\ncannot tell  +74 bytes per hour", "5 → 29 blocks",
		" for a leak: it grew only since some time: a leak that began late, or a\n    cache that fills; another boot decides\n  since about dump 8, 8 h after its start\n" +
			"  if it leaks, the heap is exhausted in 10 h", "\n    0x401200\n",
	}, "")
	out, _, code := command("", "leaks", "--heap", "6813", "--json", logFile(t, "late.log", log))
	var j struct {
		Leaks []struct {
			Verdict, Why string
			IfLeak       struct{ In float64 } `json:"if_leak"`
		}
	}
	if err := json.Unmarshal([]byte(out), &j); err != nil || code != 0 || len(j.Leaks) != 1 || j.Leaks[0].Verdict != "unknown" || j.Leaks[0].Why == "" || math.Abs(j.Leaks[0].IfLeak.In-10) > 1e-6 {
		t.Errorf("%v %+v", err, j)
	}
}

// version is a boot of 10 dumps, an hour apart, with 50 blocks that stay and a leak of blocks of 40
// bytes. What boot names is in the header.
func version(t testing.TB, boot string, leaks, path int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "~h#boot prog=fw w=32 %s\n", boot)
	for d := range 10 {
		n := leaks * (d + 1)
		fmt.Fprintf(&b, "~h#begin %d t=%d n=%d\n", d, uint64(d+1)*3_600_000_000, 50+n)
		b.WriteString(strings.Repeat(record(t, 100, 0x401110, 0x401900), 50))
		b.WriteString(strings.Repeat(record(t, 40, uint64(path), 0x401900), n))
		fmt.Fprintf(&b, "~h#heap size=100000 free=%d\n~h#end %d\n", 50_000-40*n, d)
	}
	return b.String()
}

// The report says in which firmware versions a call path grows, and does not compare addresses
// without names, which are other functions in another build.
func TestLeaksByVersion(t *testing.T) {
	const same = 0x401110 // this path has blocks in each version
	for _, c := range []struct{ name, log, says string }{
		{"none in the earlier versions", version(t, "fw=1.4.1", 0, same) + version(t, "fw=1.4.2", 0, same) + version(t, "fw=1.4.3", 3, same),
			`firmware 1\.4\.1: none above [\d.]+ bytes per hour; firmware 1\.4\.2: none above [\d.]+ bytes per hour; firmware 1\.4\.3: leak, N %, 120 bytes per hour`},
		{"ended, and began again", version(t, "fw=1", 2, same) + version(t, "fw=2", 0, same) + version(t, "fw=3", 3, same),
			`firmware 1: leak, N %, 80 bytes per hour; firmware 2: none above [\d.]+ bytes per hour; firmware 3: leak, N %, 120 bytes per hour`},
		{"in each version", version(t, "fw=1", 2, same) + version(t, "fw=2", 3, same),
			`firmware 1: leak, N %, 80 bytes per hour; firmware 2: leak, N %, 120 bytes per hour`},
		{"ended by a version", version(t, "fw=1.1.0", 0, same) + version(t, "fw=1.2.0", 2, same) + version(t, "fw=1.3.0", 0, same),
			`firmware 1\.1\.0: none above [\d.]+ bytes per hour; firmware 1\.2\.0: leak, N %, 80 bytes per hour; firmware 1\.3\.0: none above [\d.]+ bytes per hour`},
		{"builds of one version", version(t, "fw=1 build=aa01", 0, same) + version(t, "fw=1 build=bb02", 3, same), `firmware 1, build aa01: none above [\d.]+ bytes per hour; firmware 1, build bb02: leak`},
		{"builds without a version", version(t, "build=0123456789abcdef", 0, same) + version(t, "build=bb02", 3, same), `build 0123456789ab: none above [\d.]+ bytes per hour; build bb02: leak`},
	} {
		out, errs, code := command("", "leaks", logFile(t, "fw.log", c.log))
		if code != 0 || len(regexp.MustCompile(c.says).FindAllString(regexp.MustCompile(`\s+`).ReplaceAllString(out, " "), -1)) != 2 { // of the heap, and of the call path
			t.Errorf("%s: exit code %d, %s%s", c.name, code, errs, out)
		}
	}
	checkSession(t, "ended by a version", []string{"leaks", logFile(t, "fw.log", version(t, "fw=1", 2, same)+version(t, "fw=2", 0, same))}, 0, []string{
		"none above ", " bytes per hour in 20 dumps of 2 boots over 18 h\nheap: none above ",
		"\n  it shrank by 80 bytes per hour until about line 694, boot 2, 1 h after its\n    start\n  firmware 1: leak",
		"\nThese grew, and do not now: a cache that is full, or a leak that was mended:\n\nended  +80 bytes per hour\n", "52 → 70 blocks", "\n  did not grow after about dump 11, boot 2, 1 h after its start (at most "}, "")
	some := version(t, "fw=2", 0, same)
	some = some[:strings.Index(some, "~h#begin 3")]
	checkSession(t, "few dumps of a version", []string{"leaks", logFile(t, "fw.log", version(t, "fw=1", 1, same)+some)}, 0, []string{
		"in 13", "dumps of 2 boots over 11 h\n", "firmware 1: leak", "firmware 2: cannot tell"}, "")
	out, _, _ := command("", "leaks", logFile(t, "fw.log", version(t, "fw=1", 0, same)+version(t, "fw=2", 3, 0x401200)))
	if path, n := strings.Index(out, "0x401200"), strings.Count(out, "firmware 1: none above"); path < 0 || n != 1 || strings.Index(out, "firmware 1: none above") > path {
		t.Errorf("an address that firmware 1 may not have: %s", out)
	}
	log := logFile(t, "fw.log", version(t, "fw=1.4.2", 0, same)+version(t, "fw=1.4.3", 3, same))
	out, _, _ = command("", "leaks", "--json", log)
	type versions []struct {
		Name, Verdict string
	}
	want := versions{{"firmware 1.4.2", "none"}, {"firmware 1.4.3", "leak"}}
	var got struct{ Leaks, Heaps []struct{ Versions versions } }
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Leaks) != 1 || len(got.Heaps) != 1 ||
		!slices.Equal(got.Leaks[0].Versions, want) || !slices.Equal(got.Heaps[0].Versions, want) {
		t.Errorf("%v, %+v, want %v", err, got, want)
	}
	page, errs, _ := command("", "html", log)
	if !strings.Contains(page, "firmware 1.4.2: none above ") {
		t.Errorf("the page does not name the version: %s", errs)
	}
}

// Logs of which each has one dump are one series, in the order given.
func TestLeaksOfSingleDumps(t *testing.T) {
	var logs []string
	for i, dump := range strings.SplitAfter(device(t, 9, 0), "~h#begin ")[1:] {
		logs = append(logs, logFile(t, fmt.Sprintf("%d.log", i), "~h#begin "+strings.TrimSuffix(dump, "~h#begin ")))
	}
	out, errs, code := command("", append([]string{"leaks"}, logs...)...)
	if code != 0 || !strings.HasPrefix(out, "1 leak in 9 dumps\n") || !strings.Contains(out, "+120 bytes per dump") {
		t.Errorf("exit code %d, %s%s", code, errs, out)
	}
}

// A recording of events alone is sampled. Blocks of 16 bytes leak each 10 ms, others live for 5 ms.
func TestLeaksOfEvents(t *testing.T) {
	var b strings.Builder
	b.WriteString("~h#boot prog=x w=32\n")
	event := func(kind, addr, us, size uint64, pcs ...uint64) {
		var u codec.User
		u.Set(codec.TagEvent, kind)
		u.Set(codec.TagAddress, addr)
		u.Set(codec.TagTime, us)
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{PCs: pcs, Size: size}, &u)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(codec.AppendEventLine(nil, blob), '\n'))
	}
	for i := range uint64(500) {
		event(codec.EventAllocated, 0x10000+i*16, i*10_000, 16, 0x401200, 0x401900)
		event(codec.EventAllocated, 0x90000, i*10_000+1, 512, 0x401100, 0x401900)
		event(codec.EventFreed, 0x90000, i*10_000+5_000, 0)
	}
	out, errs, code := command("", "leaks", logFile(t, "x.rec", b.String()))
	if code != 0 || !regexp.MustCompile(`^1 leak in [4-8][0-9] dumps over `).MatchString(out) || !regexp.MustCompile(`leak, N %  \+1,(59\d|60\d) bytes per second `).MatchString(out) || !strings.Contains(out, "    0x401200\n") {
		t.Errorf("exit code %d, %s%s", code, errs, out) // 16 bytes per 10 ms are 1,600 per second
	}
}

// Dumps that are printed newest first are told apart by what they end with. If one lost its
// end, they cannot be.
func TestUndecidedDumps(t *testing.T) {
	var b strings.Builder
	for n := 10; n < 16; n++ {
		b.WriteString("heap:\n")
		for i := n; i >= 0; i-- {
			b.WriteString(record(t, 64, 0x401000+uint64(i)*16))
		}
	}
	whole := logFile(t, "whole.log", b.String())
	lost := logFile(t, "lost.log", strings.Replace(b.String(), record(t, 64, 0x401000), "", 1))
	if out, errs, code := command("", "top", whole); code != 0 || !strings.Contains(out, "dump 6: 1,024 bytes in 16 allocations") {
		t.Errorf("exit code %d, %s%s", code, errs, out)
	}
	for _, c := range []string{"top", "leaks", "diff"} {
		if _, errs, code := command("", c, lost); code != 2 || !strings.Contains(errs, "looks like 5 dumps") || !strings.Contains(errs, "give --split REGEX, or --dump all to report on their sum\n") {
			t.Errorf("%s: exit code %d, %s", c, code, errs)
		}
	}
	for _, log := range []string{whole, lost} { // live does not wait for the end of the log
		if out, errs, code := command("", "live", log); code != 2 || out != "" || !strings.Contains(errs, "give --split REGEX\n") {
			t.Errorf("live: exit code %d, %s%s", code, out, errs)
		}
	}
	if out, errs, code := command("", "top", "-q", "--dump", "all", lost); code != 0 || errs != "" || !strings.Contains(out, "5,120 bytes in 80 allocations") {
		t.Errorf("exit code %d, %s%s", code, errs, out)
	}
	if _, errs, code := command("", "top", "-q", lost); code != 2 || !strings.HasSuffix(errs, "at which line a dump begins, or --dump all to report on their sum\n") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// What is recorded beside the call path is a way to group.
func TestByThreadAndSize(t *testing.T) {
	var b strings.Builder
	b.WriteString("~h#begin 1 u=1\n")
	for i, size := range []uint64{64, 64, 100} {
		var u codec.User
		u.Set(codec.TagThread, uint64(7+i%2))
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x401100 + uint64(i)*16}, Size: size}, &u)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(codec.AppendLine(nil, blob), '\n'))
	}
	b.WriteString("~h#end 1\n")
	log := logFile(t, "fw.log", b.String())
	for by, want := range map[string]string{
		"thread": "       164  71.9      2        164  71.9      2  thread 7\n        64  28.1      1         64  28.1      1  thread 8\n",
		"size":   "       128  56.1      2        128  56.1      2  64 bytes\n       100  43.9      1        100  43.9      1  100 bytes\n",
	} {
		if out, errs, code := command("", "top", "--by", by, log); code != 0 || !strings.HasSuffix(out, want) {
			t.Errorf("%s: exit code %d, %s%s", by, code, errs, out)
		}
	}
	if out, _, code := command("", "top", "--by", "thread", logFile(t, "none.log", device(t, 1, 0))); code != 0 || !strings.Contains(out, "(thread not recorded)") {
		t.Errorf("exit code %d, %s", code, out)
	}
}

// A stack of 31 frames was cut there: its outermost frame is no root.
func TestCutStack(t *testing.T) {
	var pcs []uint64
	for i := range uint64(31) {
		pcs = append(pcs, 0x401000+16*i)
	}
	log := record(t, 64, pcs...) + record(t, 32, pcs[:30]...)
	out, errs, code := command(log, "top", "--cum", "-n", "0", "-")
	if code != 0 || !regexp.MustCompile(`(?m) 64  +66\.7 +1  \(cut at 31 frames\)$`).MatchString(out) || !regexp.MustCompile(`(?m) 96 +100\.0 +2  0x4011d0$`).MatchString(out) {
		t.Errorf("exit code %d, %s%s", code, errs, out)
	}
}

// checkJSON validates what a command writes by the schema, and returns it.
func checkJSON(t *testing.T, args ...string) map[string]any {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../../docs/btheap.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	out, errs, code := command("", append(args, "--json")...)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
	if err != nil || code != 0 {
		t.Fatalf("%v: exit code %d, %s, %v", args, code, errs, err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%v: %v\n%s", args, err, out)
	}
	return value.(map[string]any)
}

func TestJSON(t *testing.T) {
	log := logFile(t, "fw.log", device(t, 12, 4))
	d := checkJSON(t, "leaks", "--heap", "64K", log)
	row := d["leaks"].([]any)[0].(map[string]any)
	if rate, err := row["rate"].(json.Number).Float64(); err != nil || rate < 100 || rate > 140 || row["verdict"] != "leak" || d["exhaustion"] == nil || d["per"] != "hour" {
		t.Errorf("%v", row)
	}
	checkChanges(t, checkJSON(t, "leaks", logFile(t, "steps.log", steps(t))))
	top := checkJSON(t, "top", "-n", "1", log)
	if first := top["sites"].([]any)[0].(map[string]any); first["function"] != "0x401110" || top["left"].(json.Number) != "6" {
		t.Errorf("%v", top)
	}
	whole := logFile(t, "whole.log", device(t, 5, 0))
	for _, args := range [][]string{{"top", "--stacks", log}, {"top", "--by", "module", log}, {"diff", "--dump", "1..4", "--weight", "count", whole}, {"diff", whole}, {"dumps", log},
		{"leaks", logFile(t, "short.log", device(t, 3, 0))}} {
		checkJSON(t, args...)
	}
	// The schema rejects what is not in it.
	schema, err := jsonschema.NewCompiler().Compile("../../docs/btheap.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	delete(row, "probability")
	if schema.Validate(map[string]any(d)) == nil {
		t.Error("the schema takes a leak without probability")
	}
}

// steps returns dumps of a path that holds a block more in every second dump, and none in the sixth.
func steps(t *testing.T) string {
	var log strings.Builder
	for d := range 12 {
		fmt.Fprintf(&log, "~h#begin %d t=%d\n%s", d, 1000*d, record(t, 8, 0x402000))
		for range d / 2 * min(1, max(d-5, 5-d)) {
			log.WriteString(record(t, 24, 0x401000))
		}
		fmt.Fprintf(&log, "~h#end %d\n", d)
	}
	return log.String()
}

// checkChanges checks the values of the path of steps: each change once.
func checkChanges(t *testing.T, found map[string]any) {
	t.Helper()
	got, err := json.Marshal(found["leaks"].([]any)[0].(map[string]any)["values"])
	var want []string
	for _, v := range [][2]int{{2, 1}, {4, 2}, {5, 0}, {6, 3}, {8, 4}, {10, 5}} {
		want = append(want, fmt.Sprintf(`{"bytes":%d,"count":%d,"dump":%d}`, 24*v[1], v[1], v[0]))
	}
	if all := "[" + strings.Join(want, ",") + "]"; err != nil || string(got) != all {
		t.Errorf("values %s, want %s", got, all)
	}
}

// checkSession runs a command: its output has the texts of says in this order, and stderr
// has errs, or nothing if that is "".
func checkSession(t *testing.T, name string, args []string, wantCode int, says []string, wantErrs string) {
	t.Helper()
	out, errs, code := command("", args...)
	rest := out
	for _, s := range says {
		i := strings.Index(rest, s)
		if i < 0 {
			t.Errorf("%s: no %q in\n%s", name, s, out)
			break
		}
		rest = rest[i+len(s):]
	}
	if code != wantCode || !strings.Contains(errs, wantErrs) || wantErrs == "" && errs != "" {
		t.Errorf("%s: exit code %d, want %d, %q, want %q", name, code, wantCode, errs, wantErrs)
	}
}

// Without an ELF file, a person at a terminal is told how to get names.
func TestHintOfNames(t *testing.T) {
	found := func(names func(string) string) *growth.Leaks {
		t.Helper()
		var b profile.Builder
		var dumps []*profile.Dump
		for n := range uint64(12) {
			var a symbol.Addr
			a.PC = 0x401200
			if name := names("connect"); name != "" {
				a.Location = &symbol.Location{Frames: []symbol.Frame{{Func: name, Name: name}}}
			}
			b.Add(b.Path([]symbol.Addr{a}), profile.Value{Bytes: 100 * (n + 1), Count: n + 1})
			dumps = append(dumps, b.End(profile.DumpInfo{Number: int64(n)}))
		}
		p, err := profile.New(dumps...)
		if err != nil {
			t.Fatal(err)
		}
		return growth.Judge(p, growth.Options{})
	}
	none, named := found(func(string) string { return "" }), found(func(s string) string { return s })
	for _, c := range []struct {
		name  string
		exes  []string
		found *growth.Leaks
		want  bool
	}{
		{"no names", nil, none, true}, {"an ELF file", []string{"fw.elf"}, none, false}, {"names", nil, named, false}, {"nothing", nil, &growth.Leaks{}, false},
	} {
		if len(c.found.Rows) > 0 && c.found.Rows[0].Verdict != leak.Leak {
			t.Fatalf("%s: %v, expected a leak", c.name, c.found.Rows[0].Verdict)
		}
		l := &leaks{session: &session{}}
		l.Exes = c.exes
		if text := l.hint(c.found); strings.Contains(text, "-e") != c.want {
			t.Errorf("%s: %q", c.name, text)
		}
	}
}

// A log whose dumps cannot be told apart still says how much is free.
func TestUndecidedDumpsAndHeaps(t *testing.T) {
	var b strings.Builder
	for n := range 8 {
		fmt.Fprintf(&b, "heap:\nTotals:\n    free %d allocated 10000 min_free 9000 largest_free_block 60000\n1\n2\n3\n", 120_000-2000*n)
		for range n + 8 {
			b.WriteString(record(t, 64, 0x401000))
		}
	}
	out, errs, code := command("", "leaks", logFile(t, "x.log", b.String()))
	if code != 0 || !strings.Contains(errs, "cannot be told apart") || !strings.Contains(out, "exhausted in 53 reports") {
		t.Errorf("exit code %d, %s%s", code, errs, out)
	}
}

// A dump that has only some of the blocks is not compared with those that have all.
func TestLeaksWithoutSubsets(t *testing.T) {
	var all, leaked strings.Builder
	for n := range 6 {
		dump := func(b *strings.Builder, header string, blocks int) {
			fmt.Fprintf(b, "%s\n   PID        Size Overhead    Sequence    Address Backtrace\n", header)
			for i := range blocks {
				fmt.Fprintf(b, "    35         128        8          30 %#x 0x2c5b0ef6 0x2c5a9bee\n", 0x3c55d618+256*i)
			}
			fmt.Fprintf(b, "  Total Blks  Total Size\n%12d%12d\n", blocks, 128*blocks)
		}
		dump(&all, "Memdump task ALL", 20+n)
		dump(&all, "Memdump leak", n)
		dump(&all, "Memdump task stack_alloc_ptr: 0x3c0, adj_stack_size: 2000, name: idle", 1)
		dump(&leaked, "Memdump leak", n)
		if n == 5 {
			dump(&all, "Memdump mempool", 1)
			dump(&all, "Dump allocated orphan nodes", 1)
		}
	}
	for want, log := range map[string]string{"20 → 25 blocks": all.String(), "0 → 5 blocks": leaked.String()} {
		out, errs, code := command("", "leaks", logFile(t, "x.log", log))
		if code != 0 || !strings.Contains(out, want) || strings.Contains(out, "was ending") {
			t.Errorf("exit code %d, want %q in %s%s", code, want, errs, out)
		}
	}
	if out, errs, code := command("", "top", logFile(t, "x.log", all.String())); code != 0 || !strings.Contains(out, "dump 16: 3,200 bytes in 25 allocations") || !strings.Contains(errs, "orphan") {
		t.Errorf("top: exit code %d, %s%s", code, errs, out)
	}
	if out, errs, code := command("", "map", logFile(t, "x.log", all.String())); code != 0 || !strings.Contains(out, "dump 16: ") || !strings.Contains(out, "3,200 bytes used by 25 blocks") {
		t.Errorf("map: exit code %d, %s%s", code, errs, out)
	}
}

// A log that says only that an allocation failed is no usage error: the report is what it says.
func TestOnlyNotes(t *testing.T) {
	const log, failed = "../../heaplog/testdata/systems/24-idf-alloc-fail.log", "an allocation of 1568 bytes of internal+DMA+8bit failed"
	out, errs, code := command("", log)
	if code != 1 || out != "24-idf-alloc-fail.log: "+failed+"\n" || errs != "btheap: the log has no block, and does not say what is free\n" {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	if out, errs, code = command("", "leaks", log); code != 1 || out != "" || !strings.Contains(errs, failed) {
		t.Errorf("leaks: exit code %d, %q, %q", code, out, errs)
	}
}
