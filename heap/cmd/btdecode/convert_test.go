package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/corpus"
)

// decodedLines returns the records of a log as sorted ~b# lines.
func decodedLines(t *testing.T, log string, args ...string) []string {
	t.Helper()
	out, stderr, code := command(log, append(args, "-q")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	return lines
}

// A dump of lws's lines, written as call paths and back, has the same records.
func TestConvertThereAndBack(t *testing.T) {
	log := string(corpus.Capture("i386sql"))
	paths, stderr, code := command(log, "--convert", "paths")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if len(paths) > len(log)/20 {
		t.Errorf("%d bytes of call paths, for %d", len(paths), len(log))
	}
	if strings.Contains(paths, "~m#") || !strings.Contains(paths, "~h#begin 0 k=paths l=0\n") || !strings.Contains(paths, "~h#end 0 n=2000 b=96884 l=") {
		t.Errorf("%.300s", paths)
	}
	back, stderr, code := command(paths, "--convert", "records")
	if code != 0 || !strings.Contains(stderr, "blocks written with the mean size of their entry") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var marks []string
	for l := range strings.Lines(back) {
		if strings.HasPrefix(l, "~h#") && !strings.HasPrefix(l, "~h#boot") {
			marks = append(marks, l)
		}
	}
	if want := []string{"~h#begin 0 u=1\n", "~h#end 0 n=2000 b=96884\n"}; !slices.Equal(marks, want) {
		t.Errorf("marks %q, want %q", marks, want)
	}
	if !slices.Equal(decodedLines(t, log), decodedLines(t, back)) {
		t.Error("the records are others")
	}
}

// Marks, boots, modules, events and the addresses of blocks stay; what call paths do not hold
// is said.
func TestConvertRecording(t *testing.T) {
	line := func(size, addr uint64, pcs ...uint64) string {
		u := &codec.User{}
		u.Set(codec.TagAddress, addr)
		u.Set(codec.TagThread, 7)
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{Size: size, PCs: pcs}, u)
		if err != nil {
			t.Fatal(err)
		}
		return string(codec.AppendLine(nil, blob)) + "\n"
	}
	log := "~h#boot prog=fw w=32 fw=1.2\n{{{module:0:/fw:elf:}}}\n{{{mmap:0x8000000:0x2000:load:0:rx:0x8000000}}}\n" +
		"~h#begin 3 t=5 u=1 why=request\nsome text\n" + line(8, 0x20000010, 0x8000101, 0x8000201) + line(24, 0x20000100, 0x8000101, 0x8000201) + line(24, 0x20000200, 0x8000301) +
		"~h#end 3 n=4 b=56\n~e#CF0AQQA6AE8gABAAEFeKBAAAEw==\n~h#boot w=32\n~h#begin 0 u=1\n" + line(9, 0x20000010, 0x8000101)
	paths, stderr, code := command(log, "--convert", "paths")
	if code != 0 || !strings.Contains(stderr, "4 user fields with a time, thread or sequence number, which call paths do not hold") ||
		!strings.Contains(stderr, "6 addresses written without bit 0") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"~h#boot prog=fw w=32 fw=1.2 code=8000000+1000 shift=1\n{{{module:0:/fw:elf:}}}\n", "~h#begin 3 t=5 why=request k=paths l=0\n~p#B",
		"~h#end 3 n=4 b=56 l=1\n~e#CF0AQQA6AE8gABAAEFeKBAAAEw==\n~h#boot w=32 code=8000000+1000 shift=1\n~h#begin 0 k=paths l=0\n"} {
		if !strings.Contains(paths, want) {
			t.Errorf("no %q in\n%s", want, paths)
		}
	}
	if strings.Count(paths, "~h#end") != 1 { // the second dump was cut, and stays so
		t.Errorf("%s", paths)
	}
	back, stderr, code := command(paths, "--convert", "records", "-q")
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	// Bit 0 of Thumb addresses is no part of an offset, and comes back as 0.
	want := decodedLines(t, strings.NewReplacer("0x8000101", "0x8000100").Replace(log))
	for i, l := range want {
		want[i] = strings.NewReplacer("0x8000101", "0x8000100", "0x8000201", "0x8000200", "0x8000301", "0x8000300").Replace(l)
	}
	slices.Sort(want)
	if got := decodedLines(t, back); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	blocks, _, _ := command(paths, "-F", "jsonl", "-q")
	if !strings.Contains(blocks, `"blocks":[{"address":"0x20000010","size":8},{"address":"0x20000100","size":24}]`) {
		t.Errorf("%s", blocks)
	}
}

// What ~m# lines cannot hold is left out, and said.
func TestConvertLosses(t *testing.T) {
	example := "~h#boot code=8000000+60000 shift=1\n"
	whole := "~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA\n" // of SPEC.md
	named := "~p#ABGACpT2LvCEgDC4FhykDCgQ61F\n"
	for _, c := range []struct{ log, notes string }{
		{example + "~h#begin 1 k=diff base=0\n" + whole + "~h#end 1\n", "1 dump left out, since they are the difference to another dump"},
		{example + "~h#begin 1 k=paths sample=512\n" + whole + "~h#end 1\n", "1 dump left out, since they are sampled"},
		{example + "~h#begin 1 k=paths\n" + named + "~h#end 1\n", "2 call paths written without outer frames"},
		{"~h#begin 1 k=paths\n" + whole + "~h#end 1\n", "7 frames written as code offsets, since the log does not say where the code is: give -e"},
	} {
		_, stderr, code := command(c.log, "--convert", "records")
		if code != 0 || !strings.Contains(stderr, c.notes) {
			t.Errorf("exit code %d: %q, want %q", code, stderr, c.notes)
		}
	}
	// names that later lines tell are known
	if out, stderr, _ := command(example+"~h#begin 1 k=paths\n"+named+"~h#end 1\n"+whole, "--convert", "records"); strings.Contains(stderr, "outer") {
		t.Errorf("%s%s", out, stderr)
	}
	for _, args := range [][]string{{"--convert", "x"}, {"--convert", "paths", "-F", "jsonl"}, {"--convert", "paths", "--passthrough"}, {"--convert", "paths", "--follow", "x"}} {
		if _, _, code := command("", args...); code != 2 {
			t.Errorf("%v: exit code %d, want 2", args, code)
		}
	}
	if _, stderr, code := command(example+whole, "--convert", "paths"); code == 0 || !strings.Contains(stderr, "the log already has ~p# lines") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Call paths are readable as text and as JSON.
func TestCallPathText(t *testing.T) {
	log := "~h#boot code=8000000+60000 shift=1\nuart: ~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA ok\n"
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	a, b := "call path af2f64e9: 96 bytes in 3 blocks, 0x8005b10 0x8001a3c 0x8000284\n", "call path e4ca1178: 512 bytes in 1 block, 0x8010222 0x8005b62 0x8001a3c 0x8000284"
	frames := func(list ...string) string {
		s := ""
		for i, pc := range list {
			if i > 0 {
				s += ","
			}
			s += `{"pc":"` + pc + `","state":"exact"}`
		}
		return `"frames":[` + s + "]}\n"
	}
	place := `{"file":"` + path + `","line":2,"offset":41,`
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{path}, a + b + "\n"},
		{[]string{"--passthrough", path}, "~h#boot code=8000000+60000 shift=1\nuart: " + a + b + " ok\n"},
		{[]string{"-F", "jsonl", path}, place + `"call_path":"af2f64e9","dump":1,"count":3,"bytes":96,` + frames("0x8005b10", "0x8001a3c", "0x8000284") +
			place + `"call_path":"e4ca1178","dump":1,"count":1,"bytes":512,` + frames("0x8010222", "0x8005b62", "0x8001a3c", "0x8000284")},
		{[]string{"--focus", "0x8010222", path}, b + "\n"},
	} {
		out, stderr, code := command("", c.args...)
		if code != 0 || out != c.want {
			t.Errorf("%v: exit code %d, %s\n%s\nwant\n%s", c.args, code, stderr, out, c.want)
		}
	}
	out, _, code := command("~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtB\n~v#AAAAofBAApT2LvCgBDFEgQJPDAAAAAA\n" + log[35:])
	if code != 0 || !strings.Contains(out, "[unreadable: ") || !strings.Contains(out, ", crc, BT-P") && !strings.Contains(out, "[crc") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// Dumps that only their ends tell apart are not added up.
func TestConvertUnmarkedDumps(t *testing.T) {
	var b strings.Builder
	for d := range 6 {
		b.WriteString("listing\n")
		for i := 12 + 9*d; i > 0; i-- { // the newest first
			blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{PCs: []uint64{0x401000 + uint64(i)*16, 0x402000}, Size: uint64(i)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(codec.AppendLine(nil, blob), '\n'))
		}
	}
	for _, kind := range []string{"paths", "records"} {
		if _, stderr, code := command(b.String(), "--convert", kind); code != 2 || !strings.Contains(stderr, "the log has 6 dumps and no ~h#begin lines") {
			t.Errorf("%s: exit code %d, %s", kind, code, stderr)
		}
		if out, stderr, code := command(b.String(), "--convert", kind, "--dump", "2"); code != 0 || kind == "paths" && !strings.Contains(out, "~h#end 0 n=21 b=231 ") {
			t.Errorf("%s of dump 2: exit code %d, %s%s", kind, code, stderr, out)
		}
	}
}

// The boot line that a conversion adds comes before the memory map, which it would end.
func TestConvertKeepsTheMap(t *testing.T) {
	const log = "{{{module:0:/app:elf:ab}}}\n{{{mmap:0x400000:0x1000:load:0:rx:0x0}}}\n~b#size: 8, 0x400010 0x400020\n"
	paths, errs, code := command(log, "-q", "--convert", "paths")
	if code != 0 || !strings.HasPrefix(paths, "~h#boot code=") {
		t.Fatalf("exit code %d, %s%s", code, errs, paths)
	}
	if out, _, _ := command(paths, "-q", "-F", "jsonl"); !strings.Contains(out, `"module":"/app"`) || !strings.Contains(paths, "{{{module:0:/app:elf:ab}}}\n") {
		t.Errorf("no module in %s", out)
	}
}
