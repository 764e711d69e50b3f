package heapfile

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// text returns the samples of a profile, in order, each as "count bytes: innermost outer …".
func text(p *profile.Profile) string {
	var list []string
	for _, s := range p.Sample {
		var names []string
		for _, l := range s.Location {
			name := fmt.Sprintf("%#x", l.Address)
			for i, line := range l.Line {
				if i == 0 {
					name = ""
				} else {
					name += "<"
				}
				name += line.Function.Name
				if line.Function.Filename != "" {
					name += fmt.Sprintf("(%s:%d)", line.Function.Filename, line.Line)
				}
			}
			names = append(names, name)
		}
		list = append(list, fmt.Sprintf("%d %d: %s", s.Value[0], s.Value[1], strings.Join(names, " ")))
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

const heaptrackFile = `v 10400 3
X ./p
I 1000 3e8
s 1 p
s 4 main
s 5 inner
s 3 a.c
i 401136 1 3 4 7 2 4 9
i 401200 1 2 4 c
t 1 0
t 2 0
t 1 2
a 10 1
a 20 3
+ 0
+ 1
+ 1
- 1
c 5
- 0
+ 1
`

const dhatText = `{"dhatFileVersion":2
,"mode":"heap","verb":"Allocated"
,"bklt":true,"bkacc":true
,"cmd":"./p","pid":1,"te":10,"tg":5
,"pps":
 [{"tb":80,"tbk":3,"tl":1,"mb":80,"mbk":3,"gb":80,"gbk":3,"eb":16,"ebk":1,"rb":0,"wb":0,"fs":[1,2]}
 ,{"tb":5,"tbk":1,"tl":1,"mb":5,"mbk":1,"gb":0,"gbk":0,"eb":0,"ebk":0,"rb":0,"wb":0,"fs":[3]}
 ]
,"ftbl":
 ["[root]"
 ,"0x48427B5: malloc (in /usr/lib/vg.so)"
 ,"0x109173: dup_header (p.c:4)"
 ,"0x10: ???"
 ]
}
`

const ownerText = `Page allocated via order 0, mask 0x112cca(GFP_HIGHUSER_MOVABLE), pid 1, tgid 1 (swapper/0), ts 2 ns
PFN 0x1 type Movable Block 0 type Movable Flags 0x0()
 post_alloc_hook+0x10b/0x130
 get_page_from_freelist+0x1/0x2 [zram]

Page allocated via order 3, mask 0x0(), pid 1, tgid 1 (x), ts 2 ns
PFN 4096 type Unmovable Block 0 type Unmovable Flags 0x0()
 [<ffffffff8115d5f8>] generic_file_read_iter+0x378/0x590

Page allocated via order 0, mask 0x112cca(GFP_HIGHUSER_MOVABLE), pid 2, tgid 2 (y), ts 3 ns
 post_alloc_hook+0x10b/0x130
 get_page_from_freelist+0x1/0x2 [zram]
`

const tcmallocText = `heap profile:      3:      300 [     9:      900] @ heapprofile
     2:      200 [     4:      400] @ 0x1000 0x2000
     1:      100 [     1:      100] @ 0x3000
     0:        0 [     4:      400] @ 0x4000

MAPPED_LIBRARIES:
`

// jemallocText is sampled with a mean of 1024 bytes: 2 blocks of 1024 bytes represent
// 2/(1-1/e) = 3.16 blocks.
const jemallocText = `heap_v2/1024
  t*: 2: 2048 [0: 0]
  t0: 2: 2048 [0: 0]
@ 0x1000 0x2000
  t*: 2: 2048 [0: 0]
  t0: 2: 2048 [0: 0]

MAPPED_LIBRARIES:
`

func TestRead(t *testing.T) {
	inner := "inner(a.c:7)<main(a.c:9)"
	for _, test := range []struct {
		name, data string
		want       []string // of each profile, its moment and samples
	}{
		// the peak is after the second allocation of 32 bytes: 16 + 2*32
		{"heaptrack", heaptrackFile, []string{"peak\n1 16: " + inner + "\n2 64: " + inner + " main(a.c:12)", "end\n2 64: " + inner + " main(a.c:12)"}},
		{"DHAT", dhatText, []string{"peak\n3 80: malloc dup_header(p.c:4)", "end\n1 16: malloc dup_header(p.c:4)"}},
		{"page_owner", ownerText, []string{"\n1 32768: generic_file_read_iter\n2 8192: post_alloc_hook get_page_from_freelist"}},
		{"page_owner_sort", "3 times, 6 pages:\nPage allocated via order 1, mask 0x0()\n f+0x1/0x2\n\n", []string{"\n3 24576: f"}},
		{"gperftools", tcmallocText, []string{"\n1 100: 0x3000\n2 200: 0x1000 0x2000"}},
		{"jemalloc", jemallocText, []string{"\n3 3240: 0x1000 0x2000"}},
		{"a log", "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n", nil},
		{"nothing", "", nil},
	} {
		for _, compression := range []string{"", ".gz", ".zst"} {
			path := filepath.Join(t.TempDir(), "file"+compression)
			if err := os.WriteFile(path, compress(t, test.data, compression), 0o600); err != nil {
				t.Fatal(err)
			}
			list, err := Read(path)
			if err != nil {
				t.Errorf("%s%s: %v", test.name, compression, err)
				continue
			}
			var got []string
			for _, p := range list {
				if err := p.CheckValid(); err != nil {
					t.Errorf("%s: %v", test.name, err)
				}
				moment := strings.TrimPrefix(strings.TrimPrefix(p.Name, path), ": ")
				got = append(got, moment+"\n"+text(p.Profile))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s%s:\ngot  %q\nwant %q", test.name, compression, got, test.want)
			}
		}
	}
}

func compress(t *testing.T, data, by string) []byte {
	var b bytes.Buffer
	switch by {
	case ".gz":
		z := gzip.NewWriter(&b)
		z.Write([]byte(data))
		z.Close()
	case ".zst":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		z.Write([]byte(data))
		z.Close()
	default:
		b.WriteString(data)
	}
	return b.Bytes()
}

func TestDamaged(t *testing.T) {
	for _, test := range []struct{ data, want string }{
		{"v 10400 3\nX p\nt 1 0\n", "heaptrack: line 3: a trace of an instruction pointer"},
		{"v 10400 9\nX p\n", "heaptrack: line 1: file version 9, expected 1 to 3"},
		{"v 10400 3\nX p\ns 5 abc\n", "line 3: a string of 3 bytes, announced as \"5\""},
		{"v 10400 3\nX p\n+ 0\n", "an event of an allocation that is not above"},
		{"v 10400 3\nX p\ni 1 zz\n", "\"zz\", expected a hexadecimal number"},
		{`{"dhatFileVersion":3}`, "DHAT: file version 3, expected 2"},
		{`{"dhatFileVersion":2,"mode":"copy"}`, "mode \"copy\", expected \"heap\""},
		{strings.Replace(dhatText, `"fs":[3]`, `"fs":[9]`, 1), ""}, // of a path without blocks
		{strings.Replace(dhatText, `"fs":[1,2]`, `"fs":[9]`, 1), "call path 0: frame 9, expected 0 to 3"},
		{`{"dhatFileVersion":2,`, "DHAT: unexpected end of JSON input"},
		{"Page allocated via order 99, mask\n", "order 99, expected 0 to 30"},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(test.data), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path)
		if test.want == "" && err == nil {
			continue
		}
		if err == nil || test.want == "" || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%.40q: error %v, expected %q", test.data, err, test.want)
		}
	}
}

// program allocates some blocks, frees some, and names its functions.
const program = `#include <stdlib.h>
#include <string.h>
static char *keep[1000];
char *dup_header(int n) { char *p = malloc(n); memset(p, 1, n); return p; }
void fill(int n) { for (int i = 0; i < n; i++) keep[i] = dup_header(16 + i % 7); }
int main(void) { fill(1000); for (int i = 0; i < 600; i++) free(keep[i]); for (int i = 0; i < 5000; i++) free(dup_header(40)); return 0; }
`

// TestTools compares with what each tool itself says of the same file.
func TestTools(t *testing.T) {
	cmdtest.Need(t, "gcc")
	dir := t.TempDir()
	src, exe := filepath.Join(dir, "p.c"), filepath.Join(dir, "p")
	if err := os.WriteFile(src, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-g", "-O1", "-fno-inline", "-o", exe, src).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// a path that ends in dup_header, fill, main
	ours := func(p *profile.Profile) (count, size int64) {
		for _, s := range p.Sample {
			for i, l := range s.Location {
				if len(l.Line) > 0 && l.Line[0].Function.Name == "dup_header" && s.Location[i+1].Line[0].Function.Name == "fill" {
					count, size = count+s.Value[0], size+s.Value[1]
				}
			}
		}
		return count, size
	}
	t.Run("heaptrack", func(t *testing.T) {
		cmdtest.Need(t, "heaptrack", "heaptrack_print")
		run(t, dir, nil, "heaptrack", "-o", "ht", exe)
		files, _ := filepath.Glob(filepath.Join(dir, "ht*"))
		said := run(t, dir, nil, "heaptrack_print", "-l", "1", files[0])
		peak, end := two(t, files[0])
		if count, size := ours(end); count != 400 || size != 7602 {
			t.Errorf("at the end %d blocks, %d bytes; the program has 400, 7602", count, size)
		}
		for _, c := range []struct {
			pattern string
			size    int64
		}{{`peak heap memory consumption: (\S+)`, sum(peak)}, {`total memory leaked: (\S+)`, sum(end)}} {
			m := regexp.MustCompile(c.pattern).FindStringSubmatch(said)
			if want := fmt.Sprintf("%.2fK", float64(c.size)/1000); m == nil || m[1] != want {
				t.Errorf("%s: heaptrack_print has %q, the file %s", c.pattern, m, want)
			}
		}
	})
	t.Run("DHAT", func(t *testing.T) {
		cmdtest.Need(t, "valgrind")
		said := run(t, dir, nil, "valgrind", "--tool=dhat", "--dhat-out-file=dhat.json", exe)
		peak, end := two(t, filepath.Join(dir, "dhat.json"))
		for _, c := range []struct {
			moment string
			p      *profile.Profile
		}{{"gmax", peak}, {"end", end}} {
			m := regexp.MustCompile(`At t-` + c.moment + `:\s+([\d,]+) bytes`).FindStringSubmatch(said)
			if m == nil || strings.ReplaceAll(m[1], ",", "") != fmt.Sprint(sum(c.p)) {
				t.Errorf("at t-%s valgrind has %q, the file %d bytes", c.moment, m, sum(c.p))
			}
		}
		if count, size := ours(end); count != 400 || size != 7602 {
			t.Errorf("at the end %d blocks, %d bytes; the program has 400, 7602", count, size)
		}
	})
	t.Run("gperftools", func(t *testing.T) {
		libs, _ := filepath.Glob("/usr/lib/*/libtcmalloc.so.4")
		if len(libs) == 0 {
			t.Skip("no libtcmalloc.so.4")
		}
		run(t, dir, []string{"LD_PRELOAD=" + libs[0], "HEAPPROFILE=" + filepath.Join(dir, "tc")}, exe)
		files, _ := filepath.Glob(filepath.Join(dir, "tc.*.heap"))
		if len(files) == 0 {
			t.Fatal("no profile was written")
		}
		list, err := Read(files[len(files)-1])
		if err != nil || len(list) != 1 {
			t.Fatalf("%d profiles, %v", len(list), err)
		}
		if count, size := ours(list[0].Profile); count != 400 || size != 7602 {
			t.Errorf("at the end %d blocks, %d bytes; the program has 400, 7602", count, size)
		}
	})

	t.Run("jemalloc", func(t *testing.T) {
		libs, _ := filepath.Glob("/usr/lib/*/libjemalloc.so.2")
		if len(libs) == 0 {
			t.Skip("no libjemalloc.so.2")
		}
		run(t, dir, []string{"LD_PRELOAD=" + libs[0], "MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:0,prof_prefix:" + filepath.Join(dir, "je")}, exe)
		files, _ := filepath.Glob(filepath.Join(dir, "je.*.heap"))
		if len(files) == 0 {
			t.Skip("this jemalloc writes no profiles")
		}
		list, err := Read(files[len(files)-1])
		if err != nil || len(list) != 1 {
			t.Fatalf("%d profiles, %v", len(list), err)
		}
		if count, size := ours(list[0].Profile); count != 400 || size < 7602 { // sizes are those of size classes
			t.Errorf("at the end %d blocks, %d bytes; the program has 400 and at least 7602", count, size)
		}
		for _, l := range list[0].Location {
			if m := l.Mapping; m != nil && (l.Address < m.Start || l.Address >= m.Limit) {
				t.Errorf("%#x is not in its mapping, %#x to %#x", l.Address, m.Start, m.Limit)
			}
		}
	})
}

// Both forms that Go writes have the same blocks, but for rounding, and names, and go tool pprof says the same.
func TestGo(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for range 20_000 {
		kept = append(kept, make([]byte, 1000))
	}
	runtime.GC()
	runtime.GC()
	var sums [2]int64
	for form := range sums {
		path := filepath.Join(t.TempDir(), "heap")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := pprof.Lookup("heap").WriteTo(f, form); err != nil {
			t.Fatal(err)
		}
		f.Close()
		list, err := Read(path)
		if err != nil || len(list) != 1 {
			t.Fatalf("debug=%d: %d profiles, %v", form, len(list), err)
		}
		inuse := len(list[0].SampleType) - 1
		for _, s := range list[0].Sample {
			for _, l := range s.Location {
				if len(l.Line) > 0 && strings.HasSuffix(l.Line[0].Function.Name, ".TestGo") {
					sums[form] += s.Value[inuse]
					break
				}
			}
		}
	}
	if d := sums[0] - sums[1]; d < -100 || d > 100 || sums[0] < 10_000_000 || sums[0] > 40_000_000 {
		t.Errorf("debug=0 has %d bytes of the test, debug=1 %d, expected about 20 MB", sums[0], sums[1])
	}
	kept = nil

	list, err := Read("testdata/go-debug1.txt")
	if err != nil || len(list) != 1 || fmt.Sprintf("%.2f MB", float64(sum(list[0].Profile))/(1<<20)) != "22.52 MB" {
		t.Errorf("%v, %v", list, err)
	}
	for _, s := range list[0].Sample {
		if name := s.Location[0].Line[0].Function.Name; name != "main.leak" && name != "runtime.mallocgc" {
			t.Errorf("%d bytes are of %s", s.Value[1], name)
		}
	}

	// 1,000 blocks of 1,024 bytes, in a slice of 27,264, with runtime.MemProfileRate = 1.
	list, err = Read("testdata/go-heap.pb.gz")
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	inuse := map[string][2]int64{}
	for _, s := range list[0].Sample {
		f := s.Location[0].Line[0].Function.Name
		n := len(s.Value)
		inuse[f] = [2]int64{inuse[f][0] + s.Value[n-2], inuse[f][1] + s.Value[n-1]}
	}
	if want := [2]int64{1001, 1000*1024 + 27264}; inuse["main.leak"] != want {
		t.Errorf("in use: %v, expected %v of main.leak", inuse, want)
	}
}

var kept [][]byte

func two(t *testing.T, path string) (peak, end *profile.Profile) {
	t.Helper()
	list, err := Read(path)
	if err != nil || len(list) != 2 {
		t.Fatalf("%s: %d profiles, %v, expected 2", path, len(list), err)
	}
	return list[0].Profile, list[1].Profile
}

func sum(p *profile.Profile) (size int64) {
	for _, s := range p.Sample {
		size += s.Value[1]
	}
	return size
}

func run(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	c := exec.Command(args[0], args[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// FuzzRead checks that a file of any content is read, or rejected with its name.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{heaptrackFile, dhatText, ownerText, tcmallocText, jemallocText, "\x0a\x04\x08\x01\x10\x02"} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "file")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := Read(path)
		if err != nil && !strings.HasPrefix(err.Error(), path+": ") {
			t.Fatalf("error %v does not name the file", err)
		}
		for _, p := range list {
			if err := p.CheckValid(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
