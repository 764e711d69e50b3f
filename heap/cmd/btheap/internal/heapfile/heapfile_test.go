package heapfile

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
		n := len(s.Value)
		list = append(list, fmt.Sprintf("%d %d: %s", s.Value[n-2], s.Value[n-1], strings.Join(names, " ")))
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

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
	for _, test := range []struct {
		name, data string
		want       string // samples
	}{
		{"page_owner", ownerText, "1 32768: generic_file_read_iter\n2 8192: post_alloc_hook get_page_from_freelist"},
		{"page_owner_sort", "3 times, 6 pages:\nPage allocated via order 1, mask 0x0()\n f+0x1/0x2\n\n", "3 24576: f"},
		// addresses are those of the calls, a byte before the return
		{"gperftools", tcmallocText, "0 0: 0x3fff\n1 100: 0x2fff\n2 200: 0xfff 0x1fff"},
		{"jemalloc", jemallocText, "3 3239: 0xfff 0x1fff"},
		{"a log", "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n", ""},
		{"nothing", "", ""},
	} {
		for _, compression := range []string{"", ".gz", ".zst"} {
			path := filepath.Join(t.TempDir(), "file"+compression)
			if err := os.WriteFile(path, compress(t, test.data, compression), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := Read(path)
			if err != nil {
				t.Errorf("%s%s: %v", test.name, compression, err)
				continue
			}
			got := ""
			if p != nil {
				got = text(p)
				if err := p.CheckValid(); err != nil {
					t.Errorf("%s: %v", test.name, err)
				}
			}
			if got != test.want {
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
		{"heap profile: 1: 2 [1: 2] @ heapprofile\nrubbish\n", "unexpected number of sample values"},
		{"v 10400 3\nX /bin/true\nI 1000 5e2990\n", "a file of heaptrack: heaptrack_gui shows it"},
		{"Page allocated via order 99, mask\n", "order 99, expected 0 to 30"},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(test.data), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), path+": ") {
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

// TestTools compares with what a program has that these libraries profile.
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
	for _, test := range []struct {
		library, env string
		exact        bool // sizes are not those of size classes
	}{
		{"tcmalloc.so.4", "HEAPPROFILE=" + filepath.Join(dir, "tc"), true},
		{"jemalloc.so.2", "MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:0,prof_prefix:" + filepath.Join(dir, "je"), false},
	} {
		t.Run(test.library, func(t *testing.T) {
			libs, _ := filepath.Glob("/usr/lib/*/lib" + test.library)
			if len(libs) == 0 {
				t.Skipf("lib%s is not installed", test.library)
			}
			c := exec.Command(exe)
			c.Env = append(os.Environ(), "LD_PRELOAD="+libs[0], test.env)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			files, _ := filepath.Glob(filepath.Join(dir, test.library[:1]+"*.heap"))
			if len(files) == 0 {
				t.Skip("this jemalloc writes no profiles")
			}
			p, err := Read(files[len(files)-1])
			if err != nil || p == nil {
				t.Fatalf("%v, %v", p, err)
			}
			var count, size int64 // of paths that end in dup_header, fill
			for _, s := range p.Sample {
				for i, l := range s.Location {
					if len(l.Line) > 0 && l.Line[0].Function.Name == "dup_header" && s.Location[i+1].Line[0].Function.Name == "fill" {
						n := len(s.Value)
						count, size = count+s.Value[n-2], size+s.Value[n-1]
					}
				}
			}
			if count != 400 || size < 7602 || test.exact && size != 7602 {
				t.Errorf("at the end %d blocks, %d bytes; the program has 400, 7602", count, size)
			}
			for _, l := range p.Location {
				if m := l.Mapping; m != nil && (l.Address < m.Start || l.Address >= m.Limit) {
					t.Errorf("%#x is not in its mapping, %#x to %#x", l.Address, m.Start, m.Limit)
				}
			}
		})
	}
}

// The text that Go writes has the same blocks as its profile, but for rounding, and names.
func TestGoText(t *testing.T) {
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
		p, err := Read(path)
		if err != nil || p == nil {
			t.Fatalf("debug=%d: %v, %v", form, p, err)
		}
		for _, s := range p.Sample {
			for _, l := range s.Location {
				if len(l.Line) > 0 && strings.HasSuffix(l.Line[0].Function.Name, ".TestGoText") {
					sums[form] += s.Value[len(s.Value)-1]
					break
				}
			}
		}
	}
	if d := sums[0] - sums[1]; d < -100 || d > 100 || sums[0] < 10_000_000 || sums[0] > 40_000_000 {
		t.Errorf("debug=0 has %d bytes of the test, debug=1 %d, expected about 20 MB", sums[0], sums[1])
	}
	kept = nil

	// go tool pprof says 22.52 MB of this file.
	p, err := Read("testdata/go-debug1.txt")
	if err != nil || p == nil {
		t.Fatalf("%v, %v", p, err)
	}
	size := int64(0)
	for _, s := range p.Sample {
		v := s.Value[len(s.Value)-1]
		size += v
		if name := s.Location[0].Line[0].Function.Name; name != "main.leak" && name != "runtime.mallocgc" {
			t.Errorf("%d bytes are of %s", v, name)
		}
	}
	if fmt.Sprintf("%.2f MB", float64(size)/(1<<20)) != "22.52 MB" {
		t.Errorf("%d bytes", size)
	}
}

var kept [][]byte

// A profile of Go has the blocks of the program that wrote it.
func TestGo(t *testing.T) {
	// 1,000 blocks of 1,024 bytes, in a slice of 27,264, with runtime.MemProfileRate = 1.
	p, err := Read("testdata/go-heap.pb.gz")
	if err != nil || p == nil {
		t.Fatalf("%v, %v", p, err)
	}
	inuse := map[string][2]int64{}
	for _, s := range p.Sample {
		f := s.Location[0].Line[0].Function.Name
		n := len(s.Value)
		inuse[f] = [2]int64{inuse[f][0] + s.Value[n-2], inuse[f][1] + s.Value[n-1]}
	}
	if want := [2]int64{1001, 1000*1024 + 27264}; inuse["main.leak"] != want {
		t.Errorf("in use: %v, expected %v of main.leak", inuse, want)
	}
}

// FuzzRead checks that a file of any content is read, or rejected with its name.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{ownerText, tcmallocText, jemallocText, "\x0a\x04\x08\x01\x10\x02"} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "file")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Read(path)
		if err != nil && !strings.HasPrefix(err.Error(), path+": ") {
			t.Fatalf("error %v does not name the file", err)
		}
		if p != nil && p.CheckValid() != nil {
			t.Fatal(p.CheckValid())
		}
	})
}
