package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// command runs btheap and returns what it wrote and its exit code.
func command(stdin string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(stdin), &out, &errs)
	return withoutPercents(out.String()), errs.String(), code
}

var (
	percents = regexp.MustCompile(`leak, \d+ %`)
	oneLeak  = regexp.MustCompile(`1 leak \(\d+ %\)`)
)

// withoutPercents replaces the probabilities of leaks, which the weights of heap/leak decide.
func withoutPercents(s string) string {
	return oneLeak.ReplaceAllString(percents.ReplaceAllString(s, "leak, N %"), "1 leak")
}

// record is an allocation of the fixtures.
func record(t testing.TB, size uint64, pcs ...uint64) string {
	t.Helper()
	blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{PCs: pcs, Size: size}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(codec.AppendLine(nil, blob)) + "\n"
}

// leaking is a log of four dumps of a firmware: 12 settings that stay, a cache that
// comes and goes, and connections, of which 3 more are there in each dump.
func leaking(t testing.TB, marks bool) string {
	t.Helper()
	var b strings.Builder
	for d := range 4 {
		fmt.Fprintf(&b, "I (%d) wifi: state: run\nI (%d) heap: live\n", d*1000, d*1000+1)
		if marks {
			fmt.Fprintf(&b, "~h#begin %d t=%d n=%d\n", d, d*1000000, 12+1+5+3*d)
		}
		for i := range 12 {
			b.WriteString(record(t, uint64(20+i), 0x401110, 0x401300, 0x401900))
		}
		b.WriteString(record(t, uint64(100+50*(d%2)), 0x401250, 0x401510, 0x401900))
		for range 5 + 3*d {
			b.WriteString(record(t, 4096, 0x401200, 0x401500, 0x401900))
		}
		if marks {
			fmt.Fprintf(&b, "~h#end %d\n", d)
		}
	}
	return b.String()
}

const settings = 12*20 + 66 // 20 + 21 + … + 31

func logFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Blocks without a call stack have a line.
func TestTopWithoutFrames(t *testing.T) {
	log := logFile(t, "ram.rec", "~h#begin 0 n=2\n"+record(t, 40)+record(t, 60)+"~h#end 0\n")
	out, errs, code := command("", "top", log)
	if code != 0 || !strings.Contains(out, "100  100.0      2        100  100.0      2  (no frames)\n") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

func TestReports(t *testing.T) {
	log := logFile(t, "fw.log", leaking(t, false))
	marked := logFile(t, "marked.log", leaking(t, true))
	one := logFile(t, "one.log", strings.SplitAfterN(leaking(t, false), "I (1000)", 2)[0])
	first := logFile(t, "first.log", strings.SplitAfterN(leaking(t, true), "~h#end 0\n", 2)[0])
	total := func(d int) int { return settings + 100 + 50*(d%2) + 4096*(5+3*d) }
	lost := logFile(t, "lost.log", strings.Replace(leaking(t, true), record(t, 31, 0x401110, 0x401300, 0x401900), "", 1))
	whole := leaking(t, true)
	cut := logFile(t, "cut.log", whole[:strings.LastIndex(whole, record(t, 4096, 0x401200, 0x401500, 0x401900))-1])
	unfinished := logFile(t, "unfinished.log", strings.Join(strings.SplitAfter(whole, "\n")[:30], ""))
	lostInTwo := logFile(t, "lost2.log", strings.Replace(whole, "n=21", "n=42", 1))
	empty := logFile(t, "empty.log", strings.Repeat("~h#begin 0 n=0\n~h#end 0\nidle\n", 4))
	freed := logFile(t, "freed.log", "~h#boot\n~h#total allocs=3 frees=3\n~h#begin 0 n=0\n~h#end 0\n")
	swallowed := logFile(t, "swallowed.log", "~h#begin 0 n=9\n~h#end 0 n=9\n")
	boots := logFile(t, "twice.log", whole+whole)
	oneMore := logFile(t, "more.log", whole+whole+strings.SplitAfterN(whole, "~h#end 0\n", 2)[0])
	comma := func(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string // in order, on stdout
		errs string
	}{
		{"top of the last dump", []string{"top", log}, 0, []string{"dump 4: " + comma(total(3)) + " bytes in 27 allocations", "57,344", "0x401200"}, "4 dumps, of which this is the last"},
		{"top of one dump", []string{"top", "--dump", "2", log}, 0, []string{"dump 2: " + comma(total(1)) + " bytes in 21 allocations"}, ""},
		{"top of all", []string{"top", "--dump", "all", "-n", "1", log}, 0, []string{"dump 1 to dump 4: " + fmt.Sprintf("%d,%03d", (total(0)+total(1)+total(2)+total(3))/1000, (total(0)+total(1)+total(2)+total(3))%1000), "155,648", "more call sites: -n 0 lists all"}, ""},
		{"top by count", []string{"top", "--weight", "count", "-n", "1", "--dump", "1", log}, 0, []string{"12  ", "0x401110"}, ""},
		{"no such dump", []string{"top", "--dump", "9", log}, 2, nil, "--dump 9: the log has 4"},
		{"dumps", []string{"dumps", marked}, 0, []string{"Dump  Boot  Number", "1     1       0     0.000  18 of 18", "4     1       3     3.000  27 of 27"}, ""},
		{"a lost line", []string{"top", "--dump", "1", lost}, 0, []string{"dump 1"}, "17 of 18 records: lines were lost"},
		{"diff past bounds in a log", []string{"diff", "--fail-on-growth", "36913", log}, 1, nil, "grew by 36,914 bytes"},
		{"diff past a limit with a unit", []string{"diff", "--fail-on-growth", "36K", log}, 1, nil, "grew by 36,914 bytes, more than 36,864"},
		{"diff of one dump", []string{"diff", one}, 2, nil, one + ": one dump, expected two or more; --split REGEX says at which line a dump begins"},
		{"diff of one marked dump", []string{"diff", first}, 2, nil, first + ": one dump, expected two or more; the device has to log its heap again, later"},
		{"diff of one of four", []string{"diff", "--dump", "2", log}, 2, nil, "; the input has 4: give another --dump"},
		{"diff of one dump and a part", []string{"diff", "--fail-on-growth", "1", unfinished}, 2, nil, unfinished + ": 1 of 2 dumps complete, expected two or more; not complete: dump 2 ("},
		{"a limit, and a dump that is not finished", []string{"diff", "--fail-on-growth", "24577", cut}, 0, nil, "left out"},
		{"diff up to a dump that is not finished", []string{"diff", cut}, 0, []string{"dump 1 to", "dump 3", "18 → 24 allocations"}, "incomplete dumps are left out: dump 4"},
		{"diff of logs, one not finished", []string{"diff", one, cut}, 0, []string{"18 → 24 allocations"}, ""},
		{"diff of the last boot with two dumps", []string{"diff", oneMore}, 0, []string{"dump 5 to ", "dump 8"}, "3 boots; these are the dumps of boot 2; --dump all selects those of all boots"},
		{"diff of all boots", []string{"diff", "--dump", "all", boots}, 0, []string{"dump 1 to ", "dump 8"}, ""},
		{"a limit holds for the last boot", []string{"diff", "--fail-on-growth", "36913", boots}, 1, nil, "grew by 36,914 bytes"},
		{"diff without a dump that lost lines", []string{"diff", lostInTwo}, 0, []string{"dump 1 to ", "dump 4", "20,480 → 57,344"}, "incomplete dumps are left out: dump 2 (21 of 42 records)"},
		{"diff of the last boot", []string{"diff", boots}, 0, []string{"dump 5 to", "dump 8"}, "2 boots"},
		{"numbers that go back are a boot", []string{"dumps", boots}, 0, []string{"4     1       3", "5     2       0", "8     2       3"}, ""},
		{"dumps without a record", []string{"top", empty}, 2, nil, "4 dumps, all empty: does malloc reach the library (-Wl,--wrap=malloc and so on)?"},
		{"a list of those", []string{"dumps", empty}, 2, []string{"1     1       0             0 of 0      0", "4     1 "}, "4 dumps, all empty: does malloc"},
		{"all is freed", []string{"top", freed}, 2, nil, "1 dump, and it is empty\n"},
		{"records that are lost", []string{"top", swallowed}, 2, nil, "1 dump, but none of the records that they announce"},
		{"diff in a log", []string{"diff", log}, 0, []string{comma(total(0)) + " → " + comma(total(3)) + " bytes (+36,914), 18 → 27 allocations (+9)", "+36,864 bytes, +9 allocations: 20,480 → 57,344 bytes", "0x401200"}, ""},
		{"diff of two dumps", []string{"diff", "--dump", "2..3", log}, 0, []string{"+12,288 bytes", "-50 bytes, 0 allocations: 150 → 100 bytes"}, ""},
		{"diff of logs", []string{"diff", one, log}, 0, []string{"(+36,914)", "+36,864 bytes"}, ""},
		{"diff, the other way", []string{"diff", log, one}, 0, []string{"(-36,914)", "-36,864 bytes, -9 allocations"}, ""},
		{"diff past bounds", []string{"diff", "--fail-on-growth", "36913", one, log}, 1, nil, "grew by 36,914 bytes"},
		{"diff of three", []string{"diff", one, log, one}, 2, nil, "3 files, expected two"},
		{"split", []string{"dumps", "--split", "heap: live", log}, 0, []string{"   4     1       4"}, ""},
		{"no such command", []string{"tpo"}, 2, nil, `"tpo" is neither a command nor a file (did you mean "btheap top"?)`},
		{"no command", nil, 2, nil, "expected a file or a command"},
		{"a mistyped flag", []string{"top", "--dmup", "1", log}, 2, nil, "did you mean --dump?"},
		{"bad granularity", []string{"top", "--by", "colour", log}, 2, nil, `--by "colour", expected line, function`},
		{"nothing hidden", []string{"top", "--hide", "nosuch", log}, 0, []string{"0x401200"}, ""},
		{"a log without a command", []string{log}, 0, []string{"the largest call paths"}, ""},
		{"an ELF file as a log", []string{"top", os.Args[0]}, 2, nil, "an ELF file, expected a log: give it with -e"},
		{"a negative number of rows", []string{"top", "-n", "-1", log}, 2, nil, `--rows "-1": expected a number from 0`},
		{"symbols of dumps", []string{"dumps", "-e", "x.elf", log}, 2, nil, "unknown shorthand flag: 'e'"},
		{"a moment as a dump", []string{"dumps", "--at", "peak", log}, 2, nil, "unknown flag: --at"},
		{"diff of a moment", []string{"diff", "--at", "peak", log}, 2, nil, "unknown flag: --at"},
		{"a page by count", []string{"html", "--weight", "count", log}, 2, nil, "unknown flag: --weight"},
		{"pprof by module", []string{"export", "-F", "pprof", "--by", "module", log}, 2, nil, "--by has no effect here: --format pprof"},
		{"pprof by count", []string{"export", "-F", "pprof", "--weight", "count", log}, 2, nil, "--weight has no effect here: --format pprof"},
		{"no such log", []string{"top", "/no/such.log"}, 2, nil, "/no/such.log: no such file"},
		{"export without a format", []string{"export", log}, 2, nil, "expected --format: pprof, folded"},
	} {
		out, errs, code := command("", c.args...)
		if code != c.code || !strings.Contains(errs, c.errs) {
			t.Errorf("%s: exit code %d, want %d; stderr %q, want %q", c.name, code, c.code, errs, c.errs)
		}
		rest := out
		for _, want := range c.says {
			i := strings.Index(rest, want)
			if i < 0 {
				t.Errorf("%s: no %q, or not in order, in\n%s", c.name, want, out)
				break
			}
			rest = rest[i+len(want):]
		}
	}
}

func TestHelpFits(t *testing.T) {
	for _, c := range append([]string{""}, "leaks", "top", "diff", "dumps", "html", "export") {
		args := []string{"--help"}
		if c != "" {
			args = []string{c, "--help"}
		}
		help, _, code := command("", args...)
		if code != 0 || !strings.Contains(help, "Exit codes:") || !strings.Contains(help, "Examples:") {
			t.Errorf("%s: exit code %d, %q", c, code, help)
		}
		if m := regexp.MustCompile(`(?m)^ {20,}(\S+ ?\S*)\n {20,}\S`).FindStringSubmatch(help); m != nil {
			t.Errorf("%s: %q stands alone in a line", c, m[1])
		}
		for l := range strings.Lines(help) {
			if n := len([]rune(strings.TrimRight(l, "\n"))); n > 80 {
				t.Errorf("%s: %d columns: %s", c, n, l)
			}
		}
	}
	for c, flags := range map[string][]string{"dumps": {"--exe", "--hide", "--by", "--at", "--weight"}, "diff": {"--at"},
		"html": {"--weight"}} {
		help, _, _ := command("", c, "--help")
		for _, f := range flags {
			if strings.Contains(help, f+" ") {
				t.Errorf("help of %s lists %s, which has no effect", c, f)
			}
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, _, code := command("", "completion", shell); code != 0 || !strings.Contains(out, "btheap") {
			t.Errorf("completion %s: exit code %d", shell, code)
		}
	}
}

// Exports have the numbers of the log.
func TestExport(t *testing.T) {
	log := logFile(t, "fw.log", leaking(t, false))
	pb := filepath.Join(t.TempDir(), "heap.pb.gz")
	if _, errs, code := command("", "export", "-F", "pprof", "-o", pb, log); code != 0 {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	data, err := os.ReadFile(pb)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, s := range p.Sample {
		sum += s.Value[1]
	}
	if want := int64(settings + 150 + 4096*14); sum != want {
		t.Errorf("%d bytes, want %d", sum, want)
	}
	page, _, code := command("", "html", "-q", log)
	if code != 0 || !strings.HasPrefix(page, "<!") || !strings.Contains(page, "0x401200") {
		t.Errorf("html: exit code %d, %.100s", code, page)
	}
}

// A page is not written to a terminal.
func TestPageToATerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	defer terminal.Close()
	if !cli.IsTerminal(terminal) {
		t.Skip("/dev/ptmx is no terminal here")
	}
	log := logFile(t, "fw.log", leaking(t, false))
	var errs bytes.Buffer
	if code := run([]string{"html", log}, nil, terminal, &errs); code != 2 || !strings.Contains(errs.String(), "the page is not for a terminal: give -o FILE, or a pipe") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
	errs.Reset()
	if code := run([]string{"html", "-q", "-o", filepath.Join(t.TempDir(), "x.html"), log}, nil, terminal, &errs); code != 0 {
		t.Errorf("with -o: exit code %d, %s", code, errs.String())
	}
}

// An output is never an input, and appears only if it is whole.
func TestOutput(t *testing.T) {
	log := logFile(t, "fw.log", leaking(t, false))
	before, _ := os.ReadFile(log)
	if _, errs, code := command("", "html", "-o", log, log); code != 2 || !strings.Contains(errs, "same file as the input") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if after, _ := os.ReadFile(log); !bytes.Equal(before, after) {
		t.Error("the log was overwritten")
	}
	keep := logFile(t, "keep.html", "as it was")
	if _, _, code := command("nothing here\n", "html", "-o", keep); code != 2 {
		t.Errorf("exit code %d", code)
	}
	if b, _ := os.ReadFile(keep); string(b) != "as it was" {
		t.Errorf("a log without records left %q", b)
	}
}

// Boots of a position-independent program each have their own load base.
func TestBaseOfEachBoot(t *testing.T) {
	cmdtest.Need(t, "gcc")
	exe := filepath.Join(t.TempDir(), "heaplog")
	if out, err := exec.Command("gcc", "-std=c11", "-g", "-O2", "-pie", "-fPIE", "-o", exe, "../../../examples/heaplog/heaplog.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var log strings.Builder
	for range 3 { // three runs, each with another load base
		out, err := exec.Command(exe).Output()
		if err != nil {
			t.Fatal(err)
		}
		log.WriteString("*** Booting the example ***\n" + string(out))
	}
	path := logFile(t, "boots.log", log.String())
	out, errs, code := command("", "dumps", path)
	if code != 0 || strings.Count(out, "\n") != 5 {
		t.Fatalf("exit code %d, %s%s", code, out, errs)
	}
	for _, d := range []string{"1", "2", "3"} {
		out, errs, code := command("", "top", "-q", "-s", "-e", exe, "--by", "function", "--dump", d, path)
		if code != 0 || !regexp.MustCompile(`(?m)^ *0 +0\.0 +0 +122,880 +[0-9.]+ +30 +serve$`).MatchString(out) {
			t.Errorf("dump %s: exit code %d, serve not found: %s%s", d, code, out, errs)
		}
	}
}

// Identical stacks are one, those that hold the most first; numbers by hand.
func TestStacks(t *testing.T) {
	log := record(t, 100, 0x1000, 0x2000) + record(t, 30, 0x1001, 0x2000) + record(t, 100, 0x1000, 0x2000)
	out, errs, code := command(log, "top", "--stacks", "-n", "1", "-q", "-")
	want := "<stdin>: 230 bytes in 3 allocations, 2 call stacks\n\n" +
		"Bytes     %  Count  Call stack, innermost frame first\n" +
		"-------------------------------------------------------\n" +
		"  200  87.0      2  0x1000\n" +
		"                    0x2000\n" +
		"1 more call stack: -n 0 lists all\n"
	if code != 0 || out != want {
		t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, errs, out, want)
	}
}

// A recording of events: what was live when, and bad frees.
func TestEvents(t *testing.T) {
	var b strings.Builder
	event := func(kind, addr, time, size uint64, pcs ...uint64) {
		u := &codec.User{}
		u.Set(codec.TagEvent, kind)
		u.Set(codec.TagAddress, addr)
		u.Set(codec.TagTime, time)
		if kind == codec.EventMoved {
			u.Set(codec.TagOldAddress, addr)
		}
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{PCs: pcs, Size: size}, u)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(codec.AppendEventLine(nil, blob), '\n'))
	}
	b.WriteString("~h#boot prog=x w=32\n")
	event(codec.EventAllocated, 0x1000, 1_000_000, 500, 0x401100, 0x401900)
	event(codec.EventAllocated, 0x2000, 2_000_000, 7000, 0x401200, 0x401900)
	event(codec.EventFreed, 0x2000, 3_000_000, 0)
	event(codec.EventFreed, 0x2000, 3_500_000, 0)
	event(codec.EventFreed, 0x9000, 3_600_000, 0)
	event(codec.EventAllocated, 0x3000, 4_000_000, 300, 0x401100, 0x401900)
	log := logFile(t, "x.rec", b.String())
	_, errs, code := command("", "top", log)
	if want := "2 frees of addresses that are not allocated: 1 freed before, 1 unknown; the first at " + log + ":5"; code != 0 || !strings.Contains(errs, want) {
		t.Fatalf("exit code %d, %s\nwant\n%s", code, errs, want)
	}
	for at, bytes := range map[string]string{"peak": "7,500", "end": "800", "2.5s": "7,500", "3.9s": "500", "1s": "500"} {
		if out, errs, code := command("", "top", "--at", at, log); code != 0 || !strings.Contains(out, ": "+bytes+" bytes in") {
			t.Errorf("--at %s: exit code %d, %s%s", at, code, out, errs)
		}
	}
	if out, _, _ := command("", "leaks", "--json", log); !strings.Contains(out, `"bytes": 800,`) {
		t.Errorf("the last moment of leaks is not after the last event:\n%s", out)
	}
	if out, _, _ := command("", "top", log); !strings.Contains(out, "live at the peak: 7,500 bytes") {
		t.Errorf("top of events alone:\n%s", out)
	}
	events := b.String()
	event(codec.EventMoved, 0x8000, 4_100_000, 16, 0x401100, 0x401900) // stays where it is; when it was allocated is not known
	moved := logFile(t, "moved.rec", strings.Replace(b.String()[len(events):], "", "~h#boot prog=x w=32\n", 1))
	b.Reset()
	b.WriteString(events)
	if out, errs, code := command("", "top", moved); code != 0 || strings.Contains(errs, "not allocated") || !strings.Contains(out, ": 16 bytes in 1 allocation") {
		t.Errorf("a block that was moved: exit code %d, %s%s", code, out, errs)
	}
	lost := b.String() + "~h#lost n=18446744073709551615\n~h#lost n=2\n"
	if _, errs, _ := command("", "top", logFile(t, "lost.rec", lost)); !strings.Contains(errs, "dropped 9,223,372,036,854,775,807 events") {
		t.Errorf("events that were lost: %s", errs)
	}
	// A recording of a process that was cut between two lines, and one that was not.
	cut := strings.Replace(b.String(), "prog=x", "prog=x pid=7", 1)
	for text, want := range map[string]bool{b.String(): false, cut: true, cut + "~h#begin 0 n=0 why=exit\n~h#end 0 n=0\n": false} {
		_, errs, code := command("", "top", logFile(t, "cut.rec", text))
		if said := strings.Contains(errs, "process 7 has no dump at its end: it was cut"); code != 0 || said != want {
			t.Errorf("exit code %d, said %v, want %v: %s", code, said, want, errs)
		}
	}
	plain := logFile(t, "plain.log", leaking(t, false))
	if _, errs, code := command("", "top", "--at", "peak", plain); code != 2 || !strings.Contains(errs, "no events") {
		t.Errorf("--at of a log: exit code %d, %s", code, errs)
	}
}

// A log of many dumps takes time in proportion to it.
func TestManyDumps(t *testing.T) {
	took := func(n int) time.Duration {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "~h#begin %d t=%d n=1\n%s~h#end %d\n", i+1, i+1, record(t, 100, 0x401200, 0x401900), i+1)
		}
		log := logFile(t, "many.log", b.String())
		before := cmdtest.ProcessorTime()
		out, errs, code := command("", "dumps", log)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if last := strings.Fields(lines[len(lines)-1]); code != 0 || len(lines) != n+2 || last[0] != fmt.Sprint(n) {
			t.Fatalf("%d dumps: exit code %d, %d lines, the last %q; %s", n, code, len(lines), last, errs)
		}
		return cmdtest.ProcessorTime() - before
	}
	took(100)
	few, many := took(4000), took(40000)
	if many > 40*max(few, 10*time.Millisecond) { // 100 times if it were their square
		t.Errorf("4,000 dumps took %v of processor time, 40,000 %v", few, many)
	}
}

// Which task, and which memory, holds the blocks.
func TestByTaskAndHeap(t *testing.T) {
	log := filepath.Join("..", "..", "heaplog", "testdata", "systems", "07b-idf55-task-stat.log")
	for by, want := range map[string]string{"task": "thread 1 leaking_task, deleted\n", "heap": "100.0      6  heap RAM\n"} {
		if out, errs, code := command("", "top", "--by", by, log); code != 0 || !strings.Contains(out, want) {
			t.Errorf("--by %s: exit code %d, %s%s", by, code, errs, out)
		}
	}
}
