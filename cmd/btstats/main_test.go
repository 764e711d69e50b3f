package main

import (
	"bytes"
	stdgzip "compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	serial  = "../../corpus/serial.log"
	perl    = "../../corpus/captures/perl.log.gz"
	cc1     = "../../corpus/captures/cc1.log.gz"
	i386sql = "../../corpus/captures/i386sql.log.gz"
	record  = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV"
)

// The layout of every form of output. That the numbers in it are right is shown in
// package stats.
func TestGolden(t *testing.T) {
	for name, args := range map[string][]string{
		"serial.txt":  {serial},
		"serial.json": {"--format", "json", serial},
		"perl.txt":    {perl},
		"cc1.txt":     {cc1},
		"git00.txt":   {"--captured", "0,0", "../../corpus/captures/git00.log.gz"},
		"i386sql.txt": {i386sql},
		"help.txt":    {"--help"},
	} {
		var out, errs bytes.Buffer
		if code := run(args, nil, &out, &errs); code != 0 || errs.Len() > 0 {
			t.Errorf("%s: exit %d: %s", name, code, errs.String())
			continue
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s differs: %s\n(go test ./cmd/btstats -run Golden -update writes it anew)", name, cmdtest.FirstDifference(out.String(), string(want)))
		}
		if !utf8.Valid(want) {
			t.Errorf("%s is not UTF-8", name)
		}
		for i, line := range strings.Split(string(want), "\n") {
			if strings.HasSuffix(name, ".txt") && utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s:%d has %d columns", name, i+1, utf8.RuneCountInString(line))
			}
		}
	}
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", "boot\n"+record+"\n")
	more := file("more", record+"\n"+record+"\n")
	bad := file("bad", record+"\nx ~m#CgAAAAU=\n"+record+"\n")
	cut := file("cut", record+"\n"+record[:20]+"\n")
	for _, c := range []struct {
		args   string
		stdin  string
		code   int
		stderr string // all of these, a line end between
	}{
		{"GOOD", "", 0, ""},
		{"BAD", "", 0, ""},
		{"--strict GOOD", "", 0, ""},
		{"--strict BAD", "", 1, "bad:2 (offset 34): bit 6, kind of frame 0"},
		{"--strict CUT", "", 1, "cut:2 (offset 32)"},
		{"--strict -", "~m#!", 1, "<stdin>:1 (offset 0)"},
		{"-", record, 0, ""},
		{"GOOD - BAD", record, 0, ""},
		{"-", "", 2, "<stdin>: no record in 0 bytes, 0 lines; looked for ~m# and ~b#"},
		{"-", record[3:], 2, "no record"},
		{"-", "~m#CgAAAAU= ~m#AAA= ~m#AAA=\n~m#IF0BmUQugNCkgCnk", 2,
			"2 unreadable, empty: first at <stdin>:1 (offset 12)\n1 unreadable, delta-first: first at <stdin>:1 (offset 0)\n1 cut, first at <stdin>:2"},
		{"GOOD " + filepath.Join(dir, "missing"), "", 2, "missing: no such file"},
		{dir, "", 2, "is a directory"},
		{"-", "\x1f\x8bxx", 2, "<stdin>: gzip"},
		{"", "", 2, "expected a FILE"},
		{"--format xml GOOD", "", 2, `--format "xml": expected table or json`},
		{"--machine z80 GOOD", "", 2, `--machine: machine "z80" is none of exact32`},
		{"--machine exact32 GOOD", "", 0, ""},
		{"--captured 2 GOOD", "", 2, `--captured "2": expected SNIP_PRE,SNIP_POST`},
		{"--captured 2,-1 GOOD", "", 2, `--captured "2,-1"`},
		{"--nonsense GOOD", "", 2, "unknown flag: --nonsense"},
	} {
		args := strings.Fields(strings.NewReplacer("GOOD", good, "BAD", bad, "MORE", more, "CUT", cut).Replace(c.args))
		var out, errs bytes.Buffer
		code := run(args, strings.NewReader(c.stdin), &out, &errs)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d: %s", c.args, code, c.code, errs.String())
		}
		if c.stderr == "" && errs.Len() > 0 || c.code == 2 && out.Len() > 0 {
			t.Errorf("%s: wrote %q and %q", c.args, out.String(), errs.String())
		}
		for part := range strings.SplitSeq(c.stderr, "\n") {
			if !strings.Contains(errs.String(), part) {
				t.Errorf("%s: stderr is %q, want %q in it", c.args, errs.String(), part)
			}
		}
	}
}

// dump returns the object "dump" of a report in JSON.
func dump(t *testing.T, args []string, stdin string, want int) (d map[string]any, errs string) {
	t.Helper()
	var out, stderr bytes.Buffer
	if code := run(append([]string{"--format", "json"}, args...), strings.NewReader(stdin), &out, &stderr); code != want {
		t.Fatalf("%q: exit %d, want %d: %s", args, code, want, stderr.String())
	}
	var report struct{ Dump map[string]any }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	return report.Dump, stderr.String()
}

// --machine overrides the inferred machine, here against the evidence.
func TestGivenMachine(t *testing.T) {
	for _, c := range []struct{ machine, best string }{{"", "wrap64"}, {"exact64", "exact64"}} {
		args := []string{perl}
		if c.machine != "" {
			args = append(args, "--machine", c.machine)
		}
		if d, _ := dump(t, args, "", 0); d["machine"] != c.best {
			t.Errorf("--machine %q: %s", c.machine, d["machine"])
		}
	}
}

// Files, compressed or not, and standard input add up.
func TestSeveralLogs(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, "x "+record+" "+record+"\n")
	z.Close()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, zipped.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	d, _ := dump(t, []string{path, "-", path}, record, 0)
	for name, want := range map[string]float64{"records": 5, "bytes": 2*(2+31+1+31+1) + 31, "lines": 3, "payload": 37600, "distinct_paths": 1, "metadata": 5 * 36} {
		if d[name] != want {
			t.Errorf("%s: %v, want %v", name, d[name], want)
		}
	}
}

type brokenPipe struct{ err error }

func (b brokenPipe) Write([]byte) (int, error) { return 0, b.err }

func TestWriting(t *testing.T) {
	var errs bytes.Buffer
	for _, format := range []string{"table", "json"} {
		if code := run([]string{"--format", format, serial}, nil, brokenPipe{syscall.EPIPE}, &errs); code != 0 || errs.Len() > 0 {
			t.Errorf("%s into a closed pipe: exit %d: %s", format, code, errs.String())
		}
		if code := run([]string{"--format", format, serial}, nil, brokenPipe{syscall.ENOSPC}, &errs); code != 3 || errs.Len() == 0 {
			t.Errorf("%s onto a full disk: exit %d: %s", format, code, errs.String())
		}
		errs.Reset()
	}
}

// A log that ends in the middle of its compressed data: what was read is reported, the
// rest is said, and the exit code is 1.
func TestTruncatedLog(t *testing.T) {
	whole, err := os.ReadFile(perl)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.log.gz")
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	d, errs := dump(t, []string{path}, "", 1)
	z, err := stdgzip.NewReader(bytes.NewReader(whole[:len(whole)/2]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	n := bytes.Count(text, []byte("\n"))
	if err == nil || n < 50 || n > 1900 {
		t.Fatalf("%d lines of 2,000, %v", n, err)
	}
	if d["records"] != float64(n) {
		t.Errorf("%v records, compress/gzip reads %d lines", d["records"], n)
	}
	if want := fmt.Sprintf("(%d records before it are in the report)", n); !strings.Contains(errs, want) || !strings.Contains(errs, "cut.log.gz") {
		t.Errorf("stderr is %q, want %q in it", errs, want)
	}
}

// 32 frames at word 64 and none at word 32: what the command says follows --machine,
// and it does not panic.
func TestRecordWithTwoReadings(t *testing.T) {
	const line = "~m#AL39VVVUAABe/qqqqgIigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoiHQAAHE="
	for _, m := range codec.Machines() {
		want := map[int]float64{32: 0, 64: 32}[m.Word()]
		if d, _ := dump(t, []string{"--machine", m.String(), "-"}, line, 0); d["mean_depth"] != want {
			t.Errorf("%v: mean depth %v, want %v", m, d["mean_depth"], want)
		}
	}
}

// For a log of device/, the advice names the options of device/, and memory is as device/ lays
// it out: 3 pointers and the blob, padded to two words. For the same records without headers,
// both are those of lws.
func TestDeviceLog(t *testing.T) {
	var records strings.Builder
	total := map[int]int{4: 0, 8: 0} // by alignment
	for i := range 50 {
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x401200, 0x401500 + uint64(i)*8, 0x401500, 0x401600, 0x401700, 0x401800, 0x401900}, Size: uint64(1 << (i % 12))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&records, "%s\n", codec.AppendLine(nil, blob))
		for align := range total {
			total[align] += (12 + len(blob) + align - 1) / align * align
		}
	}
	for _, c := range []struct {
		log        string
		says, lack []string
	}{
		{"~h#boot prog=fw w=32\n~h#begin 0 n=50\n" + records.String() + "~h#end 0\n",
			[]string{"skip and post", "skip 0, post 0", "Recommended: skip 1, post 2", "heap.skip = 1;\n    heap.post = 2;", "padding to two words", cli.Number(total[8])}, []string{"PRE", "CMAKE", "LWS_"}},
		{records.String(), []string{"SNIP_PRE and SNIP_POST", "PRE 2, POST 1", "SNIP_PRE=3\n    -DLWS_COMPRESSED_BACKTRACES_SNIP_POST=3", "padding to a pointer", cli.Number(total[4]), "LWS_WITH_ALLOC_METADATA_LWS"}, []string{"heap.skip", "two words"}},
	} {
		var stdout, errs bytes.Buffer
		if code := run([]string{"--machine", "exact32", "-"}, strings.NewReader(c.log), &stdout, &errs); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		for _, want := range c.says {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("no %q in\n%s", want, stdout.String())
			}
		}
		for _, not := range c.lack {
			if strings.Contains(stdout.String(), not) {
				t.Errorf("%q in\n%s", not, stdout.String())
			}
		}
	}
}

// Addresses that only the dumps have take no memory on the device; times that the heap keeps do.
func TestAddressesAreOfTheLog(t *testing.T) {
	var logs [4]strings.Builder // without user fields, with addresses, with times, with both
	for i := range 50 {
		s := codec.Stack{PCs: []uint64{0x401200, 0x401500 + uint64(i%5)*8, 0x401900}, Size: uint64(20 + i)}
		for k := range logs {
			var u codec.User
			if k&1 != 0 {
				u.Set(codec.TagAddress, 0x20001000+uint64(i)*64)
			}
			if k&2 != 0 {
				u.Set(codec.TagTime, uint64(i)*1000)
			}
			blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &s, &u)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				fmt.Fprintf(&logs[k], "~h#boot prog=fw w=32\n~h#begin 0 n=50%s\n", []string{"", " u=1"}[min(k, 1)])
			}
			fmt.Fprintf(&logs[k], "%s\n", codec.AppendLine(nil, blob))
		}
	}
	var out [4]string
	for k := range logs {
		logs[k].WriteString("~h#end 0\n")
		var stdout, errs bytes.Buffer
		if code := run([]string{"-"}, strings.NewReader(logs[k].String()), &stdout, &errs); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		out[k] = stdout.String()
	}
	if out[0] != out[1] || out[2] != out[3] {
		t.Errorf("addresses count: %s", cmdtest.FirstDifference(out[1], out[0]))
	}
	if out[0] == out[2] {
		t.Error("times do not count")
	}
}

// A dump that has other records than it announces is told. A record that alone does not fit has the size that
// the sum says; one that is larger than the sum does not count.
func TestDumpsThatDoNotAddUp(t *testing.T) {
	for end, want := range map[string]string{"n=2 b=15040": "", "": "", "n=3 b=15040": "1 dump of 1 without the records that they announce",
		"n=2 b=8272": "1 damaged record counted", "n=2 b=752": "2 damaged, left out", "n=2 b=15040 l=1": ""} {
		log := "~h#boot w=32\n~h#begin 0\n" + record + "\n" + record + "\n~h#end 0 " + end
		var out, errs bytes.Buffer
		code := run([]string{"-"}, strings.NewReader(strings.TrimSpace(log)+"\n"), &out, &errs)
		if bad := want == "2 damaged, left out"; bad != (code == 2) || !strings.Contains(errs.String(), want) || (want == "") != (errs.Len() == 0) {
			t.Errorf("%q: exit %d, %s", end, code, errs.String())
		}
	}
}
