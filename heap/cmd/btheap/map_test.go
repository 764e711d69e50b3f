package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// at is an allocation with an address.
func at(t testing.TB, addr, size uint64, pcs ...uint64) string {
	t.Helper()
	var u codec.User
	u.Set(codec.TagAddress, addr)
	blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{PCs: pcs, Size: size}, &u)
	if err != nil {
		t.Fatal(err)
	}
	return string(codec.AppendLine(nil, blob)) + "\n"
}

// tornLog returns two dumps of a heap of 4,096 bytes at 0x20001000. In both, a block of 24 bytes is at
// 0x20001800, in the middle, and one of 1,000 bytes at the begin; in the first, two more of 1,000
// are there, 8 bytes behind the first and behind the middle one: holes of 40 and 1,016 bytes remain.
func tornLog(t testing.TB) string {
	const buffer, session = 0x401200, 0x401500
	first, middle := at(t, 0x20001000, 1000, buffer, 0x401900), at(t, 0x20001800, 24, session, 0x401900)
	return "~h#boot prog=fw w=32 heap=20001000+1000\n" +
		"~h#begin 0 t=1000000 n=4 u=1\n" + first + at(t, 0x200013f0, 1000, buffer, 0x401900) + middle + at(t, 0x20001820, 1000, buffer, 0x401900) +
		"~h#heap size=4096 free=1000 largest=900 min=900\n~h#end 0\n" +
		"~h#begin 1 t=2000000 n=2 u=1\n" + first + middle + "~h#heap size=4096 free=3000 largest=2000 min=900\n~h#end 1\n"
}

func TestMap(t *testing.T) {
	log := logFile(t, "fw.log", tornLog(t))
	// The times begin again: a boot whose header was lost.
	twice := tornLog(t) + tornLog(t)[strings.Index(tornLog(t), "~h#begin"):]
	four := logFile(t, "four.log", twice)
	heapOnly := logFile(t, "heap.log", "~h#boot prog=fw w=32\n~h#begin 0 n=1\n"+record(t, 20, 0x401110)+"~h#heap size=4096 free=1000 largest=250 min=900\n~h#end 0\n")
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
		errs string
	}{
		// The hole before the block in the middle has 2,048 - 1,000 bytes, that behind it 2,048 - 24.
		{"the last dump", []string{log}, 0, []string{
			"dump 2, 2 s: 4,096 bytes of heap (as the log says)\n1,024 bytes used by 2 blocks\n3,072 free in 2 holes, the largest of 2,024: fragmentation 34.1 %\ngaps below 40 bytes",
			"  0x20001000 ███████████████", "█▒·\n", "  0x20001800 █▒·", "Allocator  Largest",
			"   1     1  3,024       4  1,056      2    1,016   3.8 %      1,000      900\n",
			"   2     1  1,024       2  3,072      2    2,024  34.1 %      3,000    2,000\n",
			"1,024 to 2,047      2  3,072", "1,048 bytes kept apart by 1 block of 24 bytes, the most at 0x20001800\n    0x401500\n    0x401900\n"}, ""},
		{"another dump", []string{"--dump", "1", log}, 0, []string{"dump 1, 1 s: ", "no block lies between"}, ""},
		{"the second dump", []string{"--dump", "2", log}, 0, []string{"dump 2, 2 s: ", "   2     1  1,024", "1,048 bytes kept apart"}, ""},
		{"the third of four", []string{"--dump", "3", four}, 0, []string{"dump 3, 1 s: ", "   3     2  3,024"}, ""},
		{"the last of four", []string{"--dump", "last", four}, 0, []string{"dump 4, 2 s: ", "   4     2  1,024"}, ""},
		{"another range", []string{"--space", "20001000+3e8", log}, 0, []string{"dump 2, 2 s: 1,000 bytes of heap (as the flags say)\n1,000 bytes used by 1 block\n0 free in 0 holes", "1 block outside of the heap"}, ""},
		{"no range", []string{logFile(t, "x.log", strings.Replace(tornLog(t), " heap=20001000+1000", "", 1))}, 0,
			[]string{"3,080 bytes of heap (inferred from the blocks)\n1,024 bytes used by 2 blocks\n2,056 free in 2 holes"}, ""},
		{"no addresses", []string{heapOnly}, 0, []string{"   1     1      1,000      250"}, ""},
		{"nothing", []string{logFile(t, "no.log", leaking(t, true))}, 2, nil, "the log has neither block addresses nor reports of the allocator"},
		{"no such dump", []string{"--dump", "3", log}, 2, nil, "--dump 3: the log has 2"},
		{"several dumps", []string{"--dump", "1..2", log}, 2, nil, "--dump 1..2, expected one dump"},
		{"a wrong range", []string{"--space", "1-2", log}, 2, nil, `--space "1-2", expected START+LENGTH`},
	} {
		checkSession(t, c.name, append([]string{"map"}, c.args...), c.code, c.says, c.errs)
	}
}

func TestMapJSON(t *testing.T) {
	d := checkJSON(t, "map", logFile(t, "fw.log", tornLog(t)))
	moments, shown := d["moments"].([]any), d["map"].(map[string]any)
	field := func(from any, names ...string) string {
		for _, name := range names {
			from = from.(map[string]any)[name]
		}
		return fmt.Sprint(from)
	}
	// The numbers are those of tornLog's comment.
	for _, c := range []struct{ got, want string }{
		{fmt.Sprint(len(moments)), "2"},
		{field(moments[0], "blocks", "used"), "3024"}, {field(moments[0], "blocks", "free"), "1056"}, {field(moments[0], "blocks", "largest"), "1016"},
		{field(moments[0], "time"), "1"}, {field(moments[0], "allocator", "largest"), "900"},
		{field(moments[1], "blocks", "holes"), "2"}, {field(moments[1], "blocks", "largest"), "2024"}, {field(moments[1], "allocator", "free"), "3000"},
		{field(shown, "number"), "2"}, {field(shown, "source"), "log"}, {field(shown["ranges"].([]any)[0], "start"), fmt.Sprint(0x20001000)},
		{field(shown["pins"].([]any)[0], "kept"), "1048"}, {field(shown["pins"].([]any)[0], "address"), fmt.Sprint(0x20001800)},
		{field(shown["pins"].([]any)[0].(map[string]any)["stack"].([]any)[0], "function"), "0x401500"}, {field(shown, "left"), "0"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s in %v", c.got, c.want, d)
		}
	}
	heapOnly := logFile(t, "heap.log", "~h#boot prog=fw w=32\n~h#begin 0 n=1\n"+record(t, 20, 0x401110)+"~h#heap size=4096 free=1000 largest=250 min=900\n~h#end 0\n")
	d = checkJSON(t, "map", heapOnly)
	if first := d["moments"].([]any)[0]; d["map"] != nil || field(first, "blocks") != "<nil>" || field(first, "allocator", "fragmentation") != "0.75" {
		t.Errorf("without addresses: %v", d)
	}
}

// Events say where blocks are, too.
func TestMapOfEvents(t *testing.T) {
	var b strings.Builder
	b.WriteString("~h#boot prog=x w=32 heap=1000+1000\n")
	for i, e := range []struct{ kind, addr, size uint64 }{{0, 0x1000, 512}, {0, 0x1200, 100}, {0, 0x1800, 64}, {1, 0x1200, 0}} {
		var u codec.User
		u.Set(codec.TagEvent, e.kind)
		u.Set(codec.TagAddress, e.addr)
		u.Set(codec.TagTime, uint64(i)*1000)
		s := codec.Stack{Size: e.size}
		if e.kind == 0 {
			s.PCs = []uint64{0x401200}
		}
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &s, &u)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("~e#" + strings.TrimPrefix(string(codec.AppendLine(nil, blob)), codec.LeadIn) + "\n")
	}
	out, errs, code := command(b.String(), "map")
	if want := "576 bytes used by 2 blocks\n3,520 free in 2 holes, the largest of 1,984: fragmentation 43.6 %"; code != 0 || !strings.Contains(out, want) {
		t.Errorf("exit code %d, %s, no %q in\n%s", code, errs, want, out)
	}
}

// leaks says when it is fragmentation: by what the allocator reports.
func TestLeaksSaysFragmentation(t *testing.T) {
	const said = "ever more"
	for _, c := range []struct {
		free, largest int // in the last dump
		want          bool
	}{{12000, 4000, true}, {10800, 6750, true}, {10700, 4000, true}, {12000, 7000, false}, {8000, 6000, false}} {
		log := device(t, 12, 0)
		for d := range 12 {
			free, largest := 12000+(c.free-12000)*d/11, 9000+(c.largest-9000)*d/11
			end := fmt.Sprintf("~h#end %d\n", d)
			log = strings.Replace(log, end, fmt.Sprintf("~h#heap size=65536 free=%d largest=%d min=1000\n%s", free, largest, end), 1)
		}
		out, errs, code := command(log, "leaks")
		if code != 0 || strings.Contains(out, said) != c.want {
			t.Errorf("%+v: exit code %d, %s\n%s", c, code, errs, out)
		}
	}
}

// Lines of call paths can have the address of each block.
func TestMapOfCallPaths(t *testing.T) {
	w := callpath.Writer{Flags: callpath.Blocks, Limit: callpath.MaxSerial, Dump: 0}
	e := callpath.Entry{Path: callpath.Path{Frames: []callpath.Frame{{Value: 0x1900}, {Value: 0x1200}}}, Live: 2, Bytes: 600,
		Blocks: []callpath.Block{{Address: 0x20001000, Size: 500}, {Address: 0x20001800, Size: 100}}}
	text, err := w.Append(nil, &e)
	if err != nil {
		t.Fatal(err)
	}
	log := "~h#boot prog=fw w=32 code=400000+10000 heap=20001000+1000\n~h#begin 0 k=paths n=2 b=600 l=0\n" + string(w.Flush(text)) + "~h#end 0 n=2 b=600 l=1\n"
	out, errs, code := command(log, "map", "-q")
	for _, want := range []string{"600 bytes used by 2 blocks\n3,496 free in 2 holes, the largest of 1,948", "1,548 bytes kept apart by 1 block of 100 bytes, the most at 0x20001800\n    0x401200\n    0x401900\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %s, no %q in\n%s", code, errs, want, out)
		}
	}
}

// A dump of two heaps of ESP-IDF, with free blocks: the table of each heap has what is free.
func TestMapOfTwoHeaps(t *testing.T) {
	log := "Showing data for heap: 0x3ffae6e0 \nBlock 0x3ffae700 data, size: 100 bytes, Free: No \nBlock 0x3ffae770 data, size: 900 bytes, Free: Yes \n" +
		"Block 0x3ffaeb00 data, size: 100 bytes, Free: No \nShowing data for heap: 0x3ffb8000 \nBlock 0x3ffb8020 data, size: 100 bytes, Free: No \n" +
		"Block 0x3ffb8090 data, size: 5000 bytes, Free: Yes \n"
	out, errs, code := command(log, "map", "-q")
	for _, want := range []string{"300 bytes used by 3 blocks", "heap 0x3ffae6e0: 1 report", "900", "heap 0x3ffb8000: 1 report", "5,000"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %s, no %q in\n%s", code, errs, want, out)
		}
	}
}

// A list of the free blocks is the truth: a gap between two heaps is no hole, nor is a block that the
// log lacks. The lines are those of heap_caps_dump of ESP-IDF and of mm_memdump of NuttX.
func TestMapOfFreeBlocks(t *testing.T) {
	esp := "Showing data for heap: 0x3ffae6e0 \nBlock 0x3ffae700 data, size: 100 bytes, Free: No \nBlock 0x3ffae770 data, size: 900 bytes, Free: Yes \n" +
		"Block 0x3ffaeb00 data, size: 100 bytes, Free: No \nShowing data for heap: 0x3ffb8000 \nBlock 0x3ffb8020 data, size: 100 bytes, Free: No \nBlock 0x3ffb8090 data, size: 5000 bytes, Free: Yes \n"
	nuttx := "Dump all free memory node info\n        Size Overhead    Address\n         128        8 0x3c5089d8\n      131136        8 0x3c50b918\n  Total Blks  Total Size\n           2      131264\n" +
		"Memdump task ALL\n   PID        Size Overhead    Sequence    Address Backtrace\n     0          44        8           1 0x3c4b576c  \n     3          64        8          20 0x3c4b5798 0x2c5b0ef6 \n  Total Blks  Total Size\n           2      108\n"
	var many strings.Builder // 300 free blocks of 100 bytes, each between blocks of 100: several lines of ~h#free
	many.WriteString("Showing data for heap: 0x3ffae6e0 \n")
	for i := range 601 {
		fmt.Fprintf(&many, "Block 0x%x data, size: 100 bytes, Free: %s \n", 0x3ffae700+112*i, []string{"No", "Yes"}[i%2])
	}
	for _, c := range []struct{ name, log, says string }{
		{"two heaps", esp, "300 bytes used by 3 blocks\n5,900 free in 2 holes, the largest of 5,000: fragmentation 15.3 %\nthe holes are the free blocks that the log lists\n"},
		{"a block that is lost", strings.Replace(esp, "Block 0x3ffaeb00 data, size: 100 bytes, Free: No \n", "", 1), "200 bytes used by 2 blocks\n5,900 free in 2 holes, the largest of 5,000"},
		{"two dumps", esp + strings.ReplaceAll(esp, "900 bytes", "800 bytes"), "dump 2: 6,236 bytes of heap (inferred from the blocks)\n300 bytes used by 3 blocks\n5,800 free in 2 holes, the largest of 5,000"},
		{"what is free before what is used", nuttx, "108 bytes used by 2 blocks\n131,264 free in 2 holes, the largest of 131,136"},
		{"many free blocks", many.String(), "30,100 bytes used by 301 blocks\n30,000 free in 300 holes, the largest of 100"},
	} {
		checkSession(t, c.name, []string{"map", "-q", logFile(t, "free.log", c.log)}, 0, []string{c.says}, "")
	}
	// The list is older than a block in what was free then.
	stale := strings.Replace(nuttx, "0x3c4b5798", "0x3c50b920", 1)
	if out, _, _ := command("", "map", logFile(t, "free.log", stale)); strings.Contains(out, "that the log lists") {
		t.Errorf("a list of another moment: %s", out)
	}
}

// What the log lacks is no hole, if the dump before has the blocks there. --heap says how much follows the
// lowest block.
func TestMapOfLostBlocks(t *testing.T) {
	var first, second strings.Builder
	for i := range uint64(20) {
		line := at(t, 0x20001000+i*108, 100, 0x401200)
		first.WriteString(line)
		if i != 7 && i != 8 {
			second.WriteString(line)
		}
	}
	log := "~h#boot prog=fw w=32\n~h#begin 0 n=20 u=1\n" + first.String() + "~h#end 0\n~h#begin 1 n=20 u=1\n" + second.String() + "~h#end 1\n"
	checkSession(t, "lost", []string{"map", logFile(t, "lost.log", log)}, 0, []string{
		"2,000 bytes used by 20 blocks\n0 free in 0 holes", "\n2 of these are of the dump before: this one lacks 2 blocks\n"}, "18 of 20 records: lines were lost")
	// Three that the dump before has are gone, and two are lost: which one was freed is not known.
	fewer := strings.Replace(log, second.String(), strings.Replace(second.String(), at(t, 0x20001000+3*108, 100, 0x401200), "", 1), 1)
	fewer = strings.Replace(fewer, "~h#begin 1 n=20", "~h#begin 1 n=19", 1)
	checkSession(t, "lost and freed", []string{"map", logFile(t, "lost.log", fewer)}, 0, []string{"1,700 bytes used by 17 blocks", "\n2 more blocks missing in the log: they look like holes\n"}, "lines were lost")
	whole := log[:strings.Index(log, "~h#begin 1")]
	// 20 blocks end 19*108+100 = 2,152 bytes behind the begin of the lowest one.
	checkSession(t, "the size of the heap", []string{"map", "--heap", "4096", logFile(t, "whole.log", whole)}, 0, []string{
		"4,096 bytes of heap (as the flags say)\n2,000 bytes used by 20 blocks\n1,944 free in 1 hole, the largest of 1,944"}, "")
	checkSession(t, "a heap without its unit", []string{"map", "--heap", "4", logFile(t, "whole.log", whole)}, 2, nil,
		"--heap 4: the blocks are in 2,152 bytes, expected the size of the whole heap, such as 48K")
}

// The times of reports are those of their lines, if a clock there begins with the boot.
func TestMapTimesOfReports(t *testing.T) {
	for _, c := range []struct{ prefix, time string }{{"I (61500) app: ", "61.500"}, {"12:00:01.123 -> ", ""}} {
		log := logFile(t, "heap.log", c.prefix+"Free internal 41480 biggest block 21504 total 41480\n")
		out, errs, code := command("", "map", "-q", log)
		fields := strings.Fields(out[strings.LastIndex(out, "---")+3:])
		want := strings.Fields("1 1 " + c.time + " 41,480 21,504 48.2 %")
		if code != 0 || !slices.Equal(fields, want) {
			t.Errorf("%q: exit code %d, %s, %q, want %q", c.prefix, code, errs, fields, want)
		}
	}
}
