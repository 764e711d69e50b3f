package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// A record of a damaged line does not count with the size that it then has: all views have the size that the sum
// of its dump leaves, of the record that it was. The heap has 49,152 bytes.
func TestDamagedSize(t *testing.T) {
	const file = "testdata/firmware/damaged-size.log"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"dumps"}, "   5     1       4  18000.000  20 of 20    640  "},
		{[]string{"top", "--dump", "5"}, "dump 5: 640 bytes in 20 allocations, 1 call path"},
		{[]string{"dumps", "-v"}, "1 damaged record count"},
	} {
		out, errs, code := command("", append(c.args, file)...)
		if !strings.Contains(out+errs, c.want) || code != 0 {
			t.Errorf("btheap %s: exit code %d, no %q in\n%s%s", strings.Join(c.args, " "), code, c.want, out, errs)
		}
	}
	page := filepath.Join(t.TempDir(), "page.html")
	if _, errs, code := command("", "html", "-q", "-o", page, file); code != 0 {
		t.Fatal(errs)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var data struct {
		Dumps []struct{ Bytes, Count uint64 }
	}
	pageData(t, string(text), &data)
	for i, d := range data.Dumps {
		if d.Bytes != 640 || d.Count != 20 {
			t.Errorf("page, dump %d: %+v", i+1, d)
		}
	}
}

// damagedLog loses characters of records of a log, one in a hundred; with an even seed, it changes them.
func damagedLog(log string, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	for line := range strings.Lines(log) {
		for _, c := range []byte(line) {
			switch {
			case !strings.HasPrefix(line, "~m#") || c == '\n' || r.IntN(100) > 0:
				b.WriteByte(c)
			case seed%2 == 0:
				b.WriteByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[r.IntN(64)])
			}
		}
	}
	return b.String()
}

// addressed returns the log of leaking with the addresses of the blocks, and the sums of the dumps.
func addressed(t testing.TB) string {
	var b strings.Builder
	at, sum := uint64(0), uint64(0)
	for line := range strings.Lines(leaking(t, true)) {
		switch text, ok := strings.CutPrefix(line, "~m#"); {
		case ok:
			blob, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
			var s codec.Stack
			if err == nil {
				err = codec.Decoder{}.Decode(&s, nil, blob)
			}
			if err != nil {
				t.Fatal(err)
			}
			var u codec.User
			u.Set(codec.TagAddress, 0x20000000+at)
			at, sum = at+8192, sum+s.Size
			if blob, err = (codec.Encoder{Machine: codec.MachineExact32}).AppendBlob(nil, &s, &u); err != nil {
				t.Fatal(err)
			}
			line = string(codec.AppendLine(nil, blob)) + "\n"
		case strings.HasPrefix(line, "~h#begin "):
			line, at, sum = strings.TrimSpace(line)+" u=1\n", 0, 0
		case strings.HasPrefix(line, "~h#end "):
			line = fmt.Sprintf("%s n=%d b=%d\n", strings.TrimSpace(line), at/8192, sum)
		}
		b.WriteString(line)
	}
	return b.String()
}

// The first screen, top, dumps, the map, the page, leaks and btstats have the same bytes and blocks of the same
// dump, also of damaged logs.
func TestSameDump(t *testing.T) {
	total := regexp.MustCompile(`(?m)^(dump \d+): ([\d,]+) bytes in ([\d,]+) blocks?`)
	btstats := filepath.Join(t.TempDir(), "btstats")
	if out, err := exec.Command("go", "build", "-o", btstats, "github.com/lwsbt/lwsbt/cmd/btstats").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for seed := range uint64(12) {
		log := leaking(t, true)
		if seed >= 6 {
			log = addressed(t)
		}
		if seed%6 > 0 {
			log = damagedLog(log, seed)
		}
		file := logFile(t, fmt.Sprintf("%d.log", seed), log)
		var dumps struct {
			Dumps []struct{ Bytes, Count uint64 }
		}
		out, errs, _ := command("", "dumps", "--json", "-q", file)
		if err := json.Unmarshal([]byte(out), &dumps); err != nil {
			t.Fatal(err, errs)
		}
		var top struct{ Total struct{ Bytes, Count uint64 } }
		for i, d := range dumps.Dumps {
			out, errs, _ := command("", "top", "--json", "-q", "--dump", fmt.Sprint(i+1), file)
			if err := json.Unmarshal([]byte(out), &top); err != nil {
				t.Fatal(err, errs)
			}
			if top.Total.Bytes != d.Bytes || top.Total.Count != d.Count {
				t.Errorf("seed %d, dump %d: top has %+v, dumps %+v", seed, i+1, top.Total, d)
			}
		}
		leaks := dumps
		leaks.Dumps = nil
		out, errs, _ = command("", "leaks", "--json", "-q", file)
		if err := json.Unmarshal([]byte(out), &leaks); err != nil {
			t.Fatal(err, errs)
		}
		if !slices.Equal(leaks.Dumps, dumps.Dumps) {
			t.Errorf("seed %d: leaks has %+v, dumps %+v", seed, leaks.Dumps, dumps.Dumps)
		}
		screen, _, _ := command("", "-q", file)
		m := total.FindStringSubmatch(screen)
		if m == nil {
			t.Fatalf("seed %d: no dump in the first screen:\n%s", seed, screen)
		}
		i := 0
		fmt.Sscanf(m[1], "dump %d", &i)
		if d := dumps.Dumps[i-1]; cli.Number(d.Bytes) != m[2] || cli.Number(d.Count) != m[3] {
			t.Errorf("seed %d: the first screen has %q, dumps %+v", seed, m[0], d)
		}
		page := filepath.Join(t.TempDir(), "page.html")
		command("", "html", "-q", "-o", page, file)
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var data struct {
			Dumps []struct{ Bytes, Count uint64 }
		}
		pageData(t, string(text), &data)
		if len(data.Dumps) != len(dumps.Dumps) {
			t.Fatalf("seed %d: the page has %d dumps, the list %d", seed, len(data.Dumps), len(dumps.Dumps))
		}
		for i := range data.Dumps {
			if data.Dumps[i] != dumps.Dumps[i] {
				t.Errorf("seed %d, dump %d: the page has %+v, dumps %+v", seed, i+1, data.Dumps[i], dumps.Dumps[i])
			}
		}
		sum := dumps.Dumps[0]
		for _, d := range dumps.Dumps[1:] {
			sum.Bytes, sum.Count = sum.Bytes+d.Bytes, sum.Count+d.Count
		}
		var stats struct {
			Dump struct{ Payload, Records, Cut uint64 }
		}
		text, err = exec.Command(btstats, "--format", "json", file).Output()
		if err == nil {
			err = json.Unmarshal(text, &stats)
		}
		// btstats counts no record that is cut: it cannot know its length.
		if d := stats.Dump; err != nil || d.Payload > sum.Bytes || d.Records > sum.Count || d.Records+d.Cut < sum.Count || d.Cut == 0 && d.Payload != sum.Bytes {
			t.Errorf("seed %d: btstats has %+v, all dumps %+v, %v", seed, stats.Dump, sum, err)
		}
		if seed < 6 {
			continue
		}
		var heap struct {
			Moments []struct {
				Blocks struct{ Used, Count uint64 }
			}
		}
		out, errs, _ = command("", "map", "--json", "-q", file)
		if err := json.Unmarshal([]byte(out), &heap); err != nil || len(heap.Moments) != len(dumps.Dumps) {
			t.Fatal(err, errs)
		}
		for i, m := range heap.Moments {
			d, all := dumps.Dumps[i], []uint64{18, 21, 24, 27}[i]
			if seed == 6 && (m.Blocks.Used != d.Bytes || m.Blocks.Count != d.Count) || m.Blocks.Count > all || m.Blocks.Used > []uint64{20886, 33224, 45462, 57800}[i] {
				t.Errorf("seed %d, dump %d of %d blocks: map has %+v, dumps %+v", seed, i+1, all, m.Blocks, d)
			}
		}
	}
}

// A boot line with a range of length 0 is rejected: the message says why, and what the line says.
func TestBootCodeZero(t *testing.T) {
	_, errs, code := command("", "leaks", "-v", "testdata/firmware/boot-code-zero.log")
	if code != 0 || !strings.Contains(errs, "boot-code-zero.log:1 ") || !strings.Contains(errs, "the length is 0, expected 1 or more") {
		t.Errorf("exit %d: %s", code, errs)
	}
	const said = "1 ~h#boot line not used: program, firmware and build of the boot are not known; the first says prog=node w=32 fw=1.2 code=0+0 shift=1"
	if _, errs, _ := command("", "leaks", "-v", "testdata/firmware/boot-code-zero.log"); !strings.Contains(errs, said) {
		t.Errorf("the notes are %s", errs)
	}
}

// A log with nothing but a crash dump is told to be one.
func TestCrashLines(t *testing.T) {
	file := logFile(t, "crash.log", "started\n#CD:BEGIN#\n00007df1#CD:5a45020003000500000000004102004400000020e00100000001000000382000\n#CD:END#\n")
	if _, errs, code := command("", "leaks", file); code != 2 || !strings.Contains(errs, "a crash dump: btcore stacks") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// A report behind the ~h#end belongs to its dump: each hour, 20 blocks of 31 bytes leak, and take 64 bytes of the
// heap. 24,640 bytes are free after the last dump, which is 19.25 hours of it.
func TestReportBehindEnd(t *testing.T) {
	var b strings.Builder
	b.WriteString("~h#boot prog=gw w=32\n")
	for i := range 12 {
		fmt.Fprintf(&b, "~h#begin %d t=%d why=timer\n%s~h#end %d n=%d b=%d\n~h#heap free=%d largest=%d min=%d\n", i, (i+1)*3_600_000_000,
			strings.Repeat(record(t, 31, 0x8000444), 20*(i+1)), i, 20*(i+1), 620*(i+1), 38720-1280*i, 38720-1280*i, 38720-1280*i)
	}
	file := logFile(t, "behind.log", b.String())
	var leaks struct{ Exhaustion struct{ In float64 } }
	out, errs, _ := command("", "leaks", "--json", "-q", file)
	if err := json.Unmarshal([]byte(out), &leaks); err != nil {
		t.Fatal(err, errs)
	}
	if in := leaks.Exhaustion.In; in < 19.2 || in > 19.3 {
		t.Errorf("exhausted in %v h, want 19.25", in)
	}
	var moments struct {
		Moments []struct{ Heaps []struct{ Free uint64 } }
	}
	out, errs, _ = command("", "map", "--json", "-q", file)
	if err := json.Unmarshal([]byte(out), &moments); err == nil && len(moments.Moments) == 12 && len(moments.Moments[11].Heaps) > 0 {
		if free := moments.Moments[11].Heaps[0].Free; free != 24640 {
			t.Errorf("map: dump 12 has %d bytes free, want 24,640", free)
		}
	} else if err != nil {
		t.Fatal(err, errs)
	}
}
