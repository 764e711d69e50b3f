package heapfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
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

func TestRead(t *testing.T) {
	for _, test := range []struct {
		name, data string
		want       string // samples
	}{
		{"page_owner", ownerText, "1 32768: generic_file_read_iter\n2 8192: post_alloc_hook get_page_from_freelist"},
		{"page_owner_sort", "3 times, 6 pages:\nPage allocated via order 1, mask 0x0()\n f+0x1/0x2\n\n", "3 24576: f"},
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
	for _, seed := range []string{ownerText, "\x0a\x04\x08\x01\x10\x02"} {
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
