package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// The README of lws, put right: these are one stack.
const (
	readmeLine    = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV"
	readmeDecoded = "~b#size: 7520, 0x406651 0x406852 0x406c1b 0x406294"
)

// command runs btdecode and returns what it wrote and its exit code.
func command(stdin string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(stdin), &out, &errs)
	return out.String(), errs.String(), code
}

// line encodes a stack as a machine does.
func line(t testing.TB, m codec.Machine, size uint64, pcs ...uint64) string {
	t.Helper()
	blob, err := codec.Encoder{Machine: m}.AppendBlob(nil, &codec.Stack{PCs: pcs, Size: size}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(codec.AppendLine(nil, blob))
}

func gzipOf(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func capturePath(name string) string {
	return filepath.Join("..", "..", "..", "corpus", "captures", name)
}

func tempFile(t testing.TB, name, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// wide has addresses that a lossy encoder changes, and their results: below 2^31 the
// same, bit 31 set, and from bit 32 up the low 15 or 16 bits again.
var wide = []uint64{0x7f2b1234567c, 0x406651}

const wideDecoded = "~b#size: 8, 0x567c9234567c 0x406651"

func TestText(t *testing.T) {
	lossy := line(t, codec.MachineWrap64, 8, wide...)
	maps := tempFile(t, "app.maps", "7f2b12340000-7f2b12350000 r-xp 00001000 0:0 1 /nowhere/libx.so\n400000-500000 r-xp 0 0:0 2 /nowhere/app\n")
	for _, c := range []struct {
		name, stdin string
		args        []string
		want        string
		code        int
		says        string // on stderr
	}{
		{name: "the stock tool's job", stdin: readmeLine, want: readmeDecoded + "\n"},
		{name: "in a log", stdin: "<6>[12] heap: " + readmeLine + " live\nnothing here\n", want: readmeDecoded + "\n"},
		{name: "a line as argument", args: []string{readmeLine}, want: readmeDecoded + "\n"},
		{name: "without its lead-in", args: []string{strings.TrimPrefix(readmeLine, "~m#")}, want: readmeDecoded + "\n"},
		{name: "two lines as arguments", args: []string{readmeLine, readmeLine}, want: readmeDecoded + "\n" + readmeDecoded + "\n"},
		{name: "decoded already", stdin: "x " + readmeDecoded + "\n", want: readmeDecoded + "\n"},
		{name: "passthrough", args: []string{"--passthrough"},
			stdin: "a\r\n<6> " + readmeLine + " b " + readmeLine + "\x00\n\nend",
			want:  "a\r\n<6> " + readmeDecoded + " b " + readmeDecoded + "\x00\n\nend"},
		{name: "unreadable stays, with the reason", args: []string{"--passthrough"},
			stdin: readmeLine + "\nx ~m#AAA= y\n",
			want:  readmeDecoded + "\nx ~m#AAA= [unreadable: bit 0, length: says 0: lws had no room for the metadata of this allocation [empty, BT-BLOB-4]] y\n",
			says:  "1 record unreadable (empty), the first at <stdin>:2"},
		{name: "strict", args: []string{"--strict", "-q"}, stdin: "~m#AAA=\n" + readmeLine + "\n", code: 1,
			want: "~m#AAA= [unreadable: bit 0, length: says 0: lws had no room for the metadata of this allocation [empty, BT-BLOB-4]]\n" + readmeDecoded + "\n"},
		{name: "lost bits, marked", stdin: lossy + "\n", want: wideDecoded + "\n   [lost: 0]\n",
			says: "the encoder kept only the low 31 bits of 1 of 2 addresses: 0 recovered, 1 lost; give --maps"},
		{name: "an encoder that keeps all", args: []string{"--machine", "exact64"}, stdin: lossy + "\n", want: wideDecoded + "\n"},
		{name: "lost bits, recovered", args: []string{"--maps", maps}, stdin: lossy + "\n",
			want: "~b#size: 8, 0x7f2b1234567c 0x406651\n   [inferred: 0]\n   0 ~0x7f2b1234567c ?? in libx.so+0x667c\n   1  0x406651 ?? in app+0x6651\n",
			says: "1 recovered, 0 lost"},
		{name: "reports only", stdin: "Free heap: 41232\n", code: 1, says: "the log has no block, only what the allocator reports: btheap leaks tells the trend"},
		{name: "a crash dump", stdin: "up\n#CD:BEGIN#\n0000e0f1#CD:5a45\n", code: 2, says: "; a crash dump: btcore stacks -e ELF FILE reads it"},
		{name: "nothing to read", stdin: "no records\n", code: 2, says: "no records in 11 bytes: looked for ~m#, ~b#, ~p#"},
		{name: "nothing readable", stdin: "~m#AAA=\n", code: 2, want: "~m#AAA= [unreadable: bit 0, length: says 0: lws had no room for the metadata of this allocation [empty, BT-BLOB-4]]\n",
			says: "the only record could not be read"},
		{name: "no such file", args: []string{"/no/such.log"}, code: 2, says: "/no/such.log"},
		{name: "no such ELF file", args: []string{"-e", "/no/app"}, stdin: readmeLine, code: 2, says: "-e /no/app: no such file"},
		{name: "not an ELF file", args: []string{"-e", maps}, stdin: readmeLine, code: 2, says: `starts with "7f2b", expected "\x7fELF"`},
		{name: "bad map", args: []string{"--maps", tempFile(t, "bad", "x\n")}, stdin: readmeLine, code: 2, says: "bad:1: expected START-END"},
		{name: "bad format", args: []string{"--format", "xml"}, code: 2, says: `--format "xml", expected text, jsonl`},
		{name: "bad machine", args: []string{"--machine", "wrap"}, code: 2, says: "is none of exact32"},
		{name: "bad regex", args: []string{"--hide", "("}, code: 2, says: `--hide "(": error parsing regexp`},
		{name: "what does not go together", args: []string{"--passthrough", "-F", "jsonl"}, code: 2, says: "--passthrough goes with --format text only"},
		{name: "unknown flag", args: []string{"--frobnicate"}, code: 2, says: "unknown flag: --frobnicate"},
	} {
		out, errs, code := command(c.stdin, c.args...)
		if out != c.want {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, out, c.want)
		}
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d; %s", c.name, code, c.code, errs)
		}
		if !strings.Contains(errs, c.says) {
			t.Errorf("%s: stderr %q, want one with %q", c.name, errs, c.says)
		}
		if c.says == "" && errs != "" {
			t.Errorf("%s: stderr %q, want nothing", c.name, errs)
		}
	}
}

func TestHelpFits(t *testing.T) {
	help, _, code := command("", "--help")
	if code != 0 || !strings.Contains(help, "btdecode -e app.elf device.log") {
		t.Fatalf("exit code %d, help %q", code, help)
	}
	for l := range strings.Lines(help) {
		if n := len(strings.TrimRight(l, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, l)
		}
	}
}

// A cut record keeps its whole frames and is marked.
func TestCutRecord(t *testing.T) {
	pcs := make([]uint64, 20)
	for i := range pcs {
		pcs[i] = 0x400000 + uint64(i*i*7919)
	}
	whole := line(t, codec.MachineExact64, 96, pcs...)
	out, errs, code := command(whole[:80]+" \n"+whole+"\n", "--strict")
	lines := strings.Split(out, "\n")
	if code != 1 || len(lines) != 4 {
		t.Fatalf("exit code %d, %q", code, out)
	}
	if !strings.HasPrefix(lines[1], "   [cut: ") || !strings.HasSuffix(lines[1], " of 20 frames, no size]") {
		t.Errorf("%q, want it to say what was cut", lines[1])
	}
	_, got, _ := strings.Cut(lines[0], ",")
	if len(strings.Fields(got)) < 5 || !strings.HasPrefix(strings.SplitN(lines[2], ",", 2)[1], got) {
		t.Errorf("frames %q are not the first of %q", got, lines[2])
	}
	if !strings.Contains(errs, "1 record cut short, the first at <stdin>:1") {
		t.Errorf("stderr %q", errs)
	}
}

// A log's own text comes through as it was, byte for byte, and encoding what was
// decoded gives the log back.
func TestPassthroughKeepsTheLog(t *testing.T) {
	log, err := os.ReadFile(filepath.Join("..", "..", "..", "corpus", "serial.log"))
	if err != nil {
		t.Fatal(err)
	}
	decoded, _, code := command(string(log), "--passthrough")
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if strings.Count(decoded, "~b#") < 50 {
		t.Fatalf("%d records in the corpus", strings.Count(decoded, "~b#"))
	}
	// Take every record, and what is beside it, out of both: the rest is equal.
	rest := func(text string) (s []string) {
		for l := range strings.Lines(text) {
			if !strings.Contains(l, "~m#") && !strings.Contains(l, "~b#") {
				s = append(s, l)
			}
		}
		return s
	}
	a, b := rest(string(log)), rest(decoded)
	if strings.Join(a, "") != strings.Join(b, "") || len(a) < 20 {
		t.Errorf("%d lines without records, %d after decoding, or they differ", len(a), len(b))
	}
	// Lines with whole records only come back as they were.
	var pure strings.Builder
	for l := range strings.Lines(string(log)) {
		out, _, _ := command(l, "--passthrough", "-q")
		if (!strings.Contains(out, " [") || !strings.Contains(l, "~m#")) && !strings.Contains(l, "~b#") {
			pure.WriteString(l)
		}
	}
	text := pure.String()
	decoded, _, _ = command(text, "--passthrough", "-q")
	again := encoded(t, decoded)
	if strings.Contains(again, "~b#") || again != text {
		i := 0
		for i < min(len(again), len(text)) && again[i] == text[i] {
			i++
		}
		t.Errorf("encoding gives another log from byte %d of %d: %q, want %q", i, len(text), tail(again, i), tail(text, i))
	}
}

// encoded returns a log with its ~b# records as ~m# records of a 32-bit machine.
func encoded(t *testing.T, log string) string {
	r, err := heaplog.Open(t.Context(), heaplog.Stream(strings.NewReader(log), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []byte
	for it, err := range r.Items() {
		if err != nil {
			t.Fatal(err)
		}
		if it.Kind != recording.KindDecoded {
			out = append(out, it.Text...)
			continue
		}
		blob, err := codec.Encoder{Machine: codec.MachineWrap32}.AppendBlob(nil, it.Stack, nil)
		if err != nil {
			t.Fatal(err)
		}
		out = codec.AppendLine(out, blob)
	}
	return string(out)
}

func tail(s string, i int) string { return s[min(i, len(s)):min(i+60, len(s))] }

// Each record is resolved with the modules that were loaded when it was logged.
func TestModulesOverTime(t *testing.T) {
	const x = 0x7f0000201234
	rec := line(t, codec.MachineWrap64, 16, x)
	log := "{{{reset}}}\n{{{module:1:B:elf:bb}}}{{{mmap:0x7f0000200000:0x10000:load:1:rx:0x40000}}}\n" +
		"t0 " + rec + "\n" +
		"{{{reset}}}\n{{{module:0:A:elf:aa}}}{{{mmap:0x7e0000300000:0x10000:load:0:rx:0}}}\n" +
		"t1 " + rec + "\n" +
		"{{{module:2:D:elf:dd}}}{{{mmap:0x7f0000200000:0x8000:load:2:rx:0x1000}}} " + rec + "\n"
	out, _, _ := command(log)
	want := "~b#size: 16, 0x7f0000201234\n   [inferred: 0]\n   0 ~0x7f0000201234 ?? in B+0x41234\n" +
		"~b#size: 16, 0x123480201234\n   [lost: 0]\n   0 !0x123480201234 ?? (only the low 31 bits are known)\n" +
		"~b#size: 16, 0x7f0000201234\n   [inferred: 0]\n   0 ~0x7f0000201234 ?? in D+0x2234\n"
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

// scratch is the directories to remove after all tests.
var scratch []string

// built is the example and its log, made once for all tests.
var built = sync.OnceValues(func() (paths [2]string, err error) {
	dir, err := os.MkdirTemp("", "heaplog")
	if err != nil {
		return paths, err
	}
	scratch = append(scratch, dir)
	exe := filepath.Join(dir, "heaplog")
	src := filepath.Join("..", "..", "..", "examples", "heaplog", "heaplog.c")
	if out, err := exec.Command("gcc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g", "-O2", "-o", exe, src).CombinedOutput(); err != nil {
		return paths, fmt.Errorf("%v\n%s", err, out)
	}
	out, err := exec.Command(exe, "-b").Output()
	return [2]string{exe, string(out)}, err
})

// asCommand has this test binary be the command: see TestMain.
const asCommand = "LWSBT_TEST_AS_BTDECODE"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	code := m.Run()
	for _, dir := range scratch {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// example returns the example program, and a log of it with each record in both forms.
func example(t testing.TB) (exe, log string) {
	t.Helper()
	cmdtest.Need(t, "gcc")
	paths, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return paths[0], paths[1]
}

// The example's own encoder, and what it says it encoded.
func TestExample(t *testing.T) {
	exe, log := example(t)
	var encoded, decoded strings.Builder
	n := 0
	for l := range strings.Lines(log) {
		switch {
		case strings.Contains(l, "~m#"):
			encoded.WriteString(l)
		case strings.HasPrefix(l, "~b#"):
			decoded.WriteString(l)
			n++
		}
	}
	if n != 66 { // 12 options of 3 allocations, 30 connections
		t.Errorf("%d records, want 66", n)
	}
	if out, _, _ := command(encoded.String()); out != decoded.String() {
		t.Errorf("decoded:\n%.300s\nwant\n%.300s", out, decoded.String())
	}
	out, errs, code := command(encoded.String(), "-e", exe, "--hide", "^heap_alloc$")
	if code != 0 || strings.Contains(out, "heap_alloc") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	for _, want := range []string{"connection at ", "copy at ", "parse_line at ", "serve at ", "main at ", "(inlined)", "heaplog.c:"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%.600s", want, out)
		}
	}
	if !strings.Contains(errs, "load base 0x") {
		t.Errorf("stderr %q does not say the load base", errs)
	}
}

// An ELF file that no address is in is reported, and not one that some are in.
func TestElfOfAnotherProgram(t *testing.T) {
	exe, log := example(t)
	const elsewhere = "~b#size: 1, 0x10 0x20 0x30 0x40 0x50 0x60\n"
	for _, args := range [][]string{nil, {"-F", "jsonl"}} {
		_, errs, _ := command(elsewhere, append(args, "-e", exe+"@0x10000000")...)
		if !strings.Contains(errs, exe+": contains none of the addresses (6 are in no ELF file): ELF does not match the log") {
			t.Errorf("%v: stderr %q", args, errs)
		}
		_, errs, _ = command(onlyEncoded(log), append(args, "-e", exe)...)
		if strings.Contains(errs, "none of the addresses") {
			t.Errorf("%v: stderr %q", args, errs)
		}
	}
}

// Standard input is read from where it stands, also by what reads it more than once.
func TestStdinFromItsPlace(t *testing.T) {
	exe, log := example(t)
	lines := strings.SplitAfter(onlyEncoded(log), "\n")
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-q"}, {"-q", "-e", exe}} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Seek(int64(len(lines[0])+len(lines[1])), io.SeekStart); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		cmd.Stdin = f
		out, err := cmd.Output()
		if got, want := strings.Count(string(out), "~b#"), len(lines)-1-2; err != nil || got != want {
			t.Errorf("%q: %v, %d records of %d", args, err, got, want)
		}
	}
}

// The error for a log without records says how to give them: lws's README pipes records
// without a lead-in.
func TestNothingNamesArguments(t *testing.T) {
	const record = "IF0BmUQugNCkgCnkhdAYpQa6wAAV"
	_, errs, code := command(record)
	if code != 2 || !strings.Contains(errs, "btdecode RECORD") {
		t.Errorf("exit code %d, %q", code, errs)
	}
	out, errs, code := command("", record)
	if code != 0 || out != "~b#size: 7520, 0x406651 0x406852 0x406c1b 0x406294\n" {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
}

// mainOf returns the address of main in an ELF file.
func mainOf(t *testing.T, exe string) uint64 {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "main" })
	if at < 0 {
		t.Fatal("no main")
	}
	return symbols[at].Value
}

// A log that has only a panic is decoded. The words of the stack are no backtrace.
func TestPanicOnly(t *testing.T) {
	exe, _ := example(t)
	pc := 0x10000000 + mainOf(t, exe) + 8
	log := fmt.Sprintf("Core  0 register dump:\nMEPC    : %#08x  RA      : %#08x  SP      : 0x3fcad480\nStack memory:\n40380000: %#08x 0x00000000\n", pc, pc, pc)
	out, errs, code := command(log, "--passthrough", "-e", exe+"@0x10000000")
	if code != 0 || strings.Count(out, " main at ") != 2 {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	for _, args := range [][]string{{}, {"--passthrough"}, {"-e", exe + "@0x10000000"}, {"--format", "jsonl"}} {
		if _, errs, code = command(log, args...); code != 2 || !strings.Contains(errs, "no records") || !strings.HasSuffix(errs, "; it has a panic: --passthrough -e ELF names its addresses\n") {
			t.Errorf("%q: exit code %d, %q", args, code, errs)
		}
	}
	if _, errs, code = command(log, "--passthrough", "-e", exe+"@0x30000000"); code != 2 || !strings.HasSuffix(errs, ": give -e with the build that ran\n") {
		t.Errorf("another ELF file: exit code %d, %q", code, errs)
	}
}

// No name of a file is printed in whose code no address follows a call, unless --force is given.
func TestElfOfAnotherBuild(t *testing.T) {
	exe, _ := example(t)
	address := mainOf(t, exe)
	path := filepath.Join(t.TempDir(), "log")
	log := ""
	for i := range uint64(8) { // main begins with no call
		log += fmt.Sprintf("~b#size: 8, %#x\n", 0x10000000+address+i)
	}
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := command("", "-e", exe+"@+0x10000000", path)
	if strings.Contains(out, "main") || code != 1 || !strings.Contains(errs, "another build ran, not "+exe+": only 0 of 8 addresses in its code follow a call; --force prints its names") {
		t.Errorf("exit code %d, %s, got\n%s", code, errs, out)
	}
	out, errs, code = command("", "--force", "-e", exe+"@+0x10000000", path)
	if strings.Count(out, " main at ") != 8 || code != 0 || !strings.Contains(errs, "its names may be wrong") {
		t.Errorf("--force: exit code %d, %s, got\n%s", code, errs, out)
	}
}
