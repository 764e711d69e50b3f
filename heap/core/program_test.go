package core

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// lwsBuilds lists builds of the real library, named as in ref-c/builds.txt. The tests look
// for them in LWS_PREFIXES, and for the first build also in LWS_PREFIX.
var lwsBuilds = []struct{ name, triple, qemu string }{
	{"x86_64-gcc12-O2", "", ""},
	{"i686-gcc12-O2", "i686-linux-gnu", "qemu-i386"},
	{"mips-gcc12-O2", "mips-linux-gnu", "qemu-mips"},
	{"mipsel-gcc12-O2", "mipsel-linux-gnu", "qemu-mipsel"},
	{"ppc-gcc12-O2", "powerpc-linux-gnu", "qemu-ppc"},
	{"s390x-gcc12-O2", "s390x-linux-gnu", "qemu-s390x"},
	{"armhf-gcc12-O2", "arm-linux-gnueabihf", "qemu-arm"},
	{"aarch64-gcc12-O2", "aarch64-linux-gnu", "qemu-aarch64"},
}

// lwsPrefix returns the directory in which a build of the library is installed, or
// skips the test.
func lwsPrefix(t *testing.T, build string) string {
	t.Helper()
	var places []string
	if p := os.Getenv("LWS_PREFIXES"); p != "" {
		places = append(places, filepath.Join(p, build))
	}
	if p := os.Getenv("LWS_PREFIX"); p != "" && build == lwsBuilds[0].name {
		places = append(places, p)
	}
	for _, p := range places {
		config, err := os.ReadFile(filepath.Join(p, "include", "lws_config.h"))
		if err == nil && bytes.Contains(config, []byte("#define LWS_WITH_ALLOC_METADATA_LWS")) {
			return p
		}
	}
	t.Skip("no libwebsockets with LWS_WITH_ALLOC_METADATA_LWS: set LWS_PREFIX, or LWS_PREFIXES for several machines")
	return ""
}

// dead is a crashed program, and its earlier output.
type dead struct {
	core, exe string
	truth     []liveBlock
	lines     []string // ~m#
}

type liveBlock struct {
	addr, size uint64
	label      string
}

// lwsCore crashes a program that uses the real library.
func lwsCore(t *testing.T, build int, mode string) dead {
	b := lwsBuilds[build]
	prefix := lwsPrefix(t, b.name)
	return die(t, b.triple, b.qemu, mode, "-isystem", filepath.Join(prefix, "include"), testdata(t, "heap.c"),
		filepath.Join(prefix, "lib", "libwebsockets.a"))
}

// deviceCore crashes a program that uses device/.
func deviceCore(t *testing.T, build int, mode string, flags ...string) dead {
	b := lwsBuilds[build]
	cc := []string{"-DON_DEVICE", "-fexceptions", "-I", testdata(t, "../../../device/include"), testdata(t, "heap.c")}
	for _, name := range strings.Fields("choose encode decode line head event parse paths heap trim alloc dump") {
		cc = append(cc, testdata(t, "../../../device/src/"+name+".c"))
	}
	return die(t, b.triple, b.qemu, mode, append(cc, flags...)...)
}

// graphCore crashes testdata/graph.c with the real library or with device/.
func graphCore(t *testing.T, build int, onDevice bool, seed, count int) dead {
	b := lwsBuilds[build]
	args := fmt.Sprintf("%d %d", seed, count)
	if b.qemu != "" {
		args += " "
	}
	cc := []string{testdata(t, "graph.c"), "-pthread"}
	if onDevice {
		cc = append(cc, "-DON_DEVICE", "-fexceptions", "-I", testdata(t, "../../../device/include"))
		for _, name := range strings.Fields("choose encode decode line head event parse heap trim alloc dump") {
			cc = append(cc, testdata(t, "../../../device/src/"+name+".c"))
		}
	} else {
		prefix := lwsPrefix(t, b.name)
		cc = append(cc, "-isystem", filepath.Join(prefix, "include"), filepath.Join(prefix, "lib", "libwebsockets.a"))
	}
	return die(t, b.triple, b.qemu, args, cc...)
}

// TestLeaksOfPrograms runs programs whose blocks point to each other at random, with roots
// of every kind. It checks that all leaks are found, and no other blocks are reported.
func TestLeaksOfPrograms(t *testing.T) {
	seeds := 1
	if cmdtest.All() {
		seeds = 3
	}
	for i, b := range lwsBuilds {
		for _, heap := range []string{"lws", "device"} {
			t.Run(b.name+"-"+heap, func(t *testing.T) {
				slow(t, b.triple)
				var planted, found, missed, undecided, foreign, sure, blocks int
				for seed := range seeds {
					d := graphCore(t, i, heap == "device", seed+1, 1500)
					m, owners, from := d.open(t)
					h, err := m.FindHeap(Search{Owners: owners})
					if err != nil {
						t.Fatal(err)
					}
					if len(h.Blocks) != len(d.truth) || len(h.Notes()) > 0 {
						t.Fatalf("%d blocks, the program has %d; notes %q", len(h.Blocks), len(d.truth), h.Notes())
					}
					l := m.FindLeaks(h, from)
					for i, x := range d.truth {
						r := l.Reach[i]
						blocks++
						switch {
						case x.label == "leak" && r == Leaked:
							planted, found = planted+1, found+1
						case x.label == "leak" && r >= OnStack:
							planted, missed = planted+1, missed+1
							t.Logf("seed %d: missed: %#x, size %d", seed, x.addr, x.size)
							m.Pointers(h, from).Roots(func(at uint64, block int, loose bool) {
								if block == i {
									t.Logf("  the word at %#x holds it; in no block of the heap: %v; map %+v", at, loose, m.MapAt(at))
								}
							})
						case x.label == "leak":
							planted, undecided = planted+1, undecided+1
						case r == Leaked:
							t.Errorf("seed %d: invented: %s at %#x, size %d", seed, x.label, x.addr, x.size)
						case x.label == "kept" && r == Uncertain:
							undecided++
						case x.label == "foreign":
							foreign++
							if r == Uncertain {
								sure++
							}
						}
					}
				}
				t.Logf("%d blocks, %d leaked, of which %d found; %d undecided; %d of %d of another allocator uncertain",
					blocks, planted, found, undecided, sure, foreign)
				if missed > 0 {
					t.Errorf("%d of %d missed", missed, planted)
				}
				most := blocks / 100
				if b.qemu == "qemu-i386" {
					// The heap is below 2^28 there. A free block of glibc holds a pointer to the next
					// one, XORed with its own address >> 12: such a value often is in the heap.
					most = blocks / 10
				}
				if undecided > most {
					t.Errorf("%d of %d undecided", undecided, blocks)
				}
				if planted < 100*seeds || planted > blocks-100*seeds {
					t.Errorf("%d of %d leaked: too few to test anything", planted, blocks)
				}
			})
		}
	}
}

// die compiles a program, runs it until it crashes, and reads its output.
func die(t *testing.T, triple, qemu, mode string, cc ...string) (d dead) {
	cc = append([]string{"-g", "-O2", "-w"}, cc...)
	if qemu != "" {
		d.core, d.exe = guestCore(t, triple, qemu, mode+",die > out.txt", cc...)
	} else {
		cmdtest.Need(t, "gdb")
		dir := t.TempDir()
		d.exe = filepath.Join(dir, "heap")
		args, gcc := append(cc, "-o", d.exe), "gcc"
		if triple != "" {
			gcc, args = triple+"-gcc", append(args, "-static")
		}
		cmdtest.Need(t, gcc)
		run(t, dir, gcc, args...)
		d.core, _ = gdbCore(t, d.exe, "stop", mode+" > out.txt")
	}
	out, err := os.ReadFile(filepath.Join(filepath.Dir(d.exe), "out.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		var l liveBlock
		if n, _ := fmt.Sscanf(line, "live %x %d %s", &l.addr, &l.size, &l.label); n == 3 {
			d.truth = append(d.truth, l)
		}
		if strings.HasPrefix(line, codec.LeadIn) {
			d.lines = append(d.lines, strings.TrimSpace(line))
		}
	}
	if len(d.truth) < 100 {
		t.Fatalf("the program printed %d blocks: %s", len(d.truth), out)
	}
	return d
}

// open reads the core file and returns its owners and roots.
func (d *dead) open(t *testing.T) (m *Image, owners []Symbol, from Roots) {
	m = &Image{}
	t.Cleanup(m.Close)
	if err := m.AddFile(d.core); err != nil {
		t.Fatal(err)
	}
	bias := uint64(0)
	for _, x := range m.Modules() {
		if x.Path == d.exe {
			bias = x.Bias
		}
	}
	owners, err := m.Variables(d.exe, bias, "active", "lwsbt_heap")
	if err != nil || len(owners) == 0 {
		t.Fatalf("owners %v, %v", owners, err)
	}
	from.Data, err = m.WritableRanges(d.exe, bias)
	if err != nil || len(from.Data) == 0 {
		t.Fatalf("data %v, %v", from.Data, err)
	}
	if from.Allocator, err = m.Variables(d.exe, bias, AllocatorData...); err != nil {
		t.Fatal(err)
	}
	return m, owners, from
}

// TestLwsHeap reads the heap of the real library. The blocks must equal the library's own
// dump, bit for bit and in the same order.
func TestLwsHeap(t *testing.T) {
	for i, b := range lwsBuilds {
		t.Run(b.name, func(t *testing.T) {
			slow(t, b.triple)
			d := lwsCore(t, i, "plain")
			d.check(t, func(h *Heap, i int) bool { return string(codec.AppendLine(nil, h.Blob(i))) == d.lines[i] })
		})
	}
}

// TestDeviceHeap reads the heap of device/. The blocks must equal its own dump, with addresses
// and sequence numbers, and without alignment padding.
func TestDeviceHeap(t *testing.T) {
	for i, b := range lwsBuilds {
		t.Run(b.name, func(t *testing.T) {
			slow(t, b.triple)
			d := deviceCore(t, i, "plain")
			d.check(t, func(h *Heap, i int) bool {
				line, ok := h.AppendLine(nil, i)
				got, gotUser := fields(t, string(line))
				want, wantUser := fields(t, d.lines[i])
				_, numbered := gotUser.Get(codec.TagSequence)
				return ok && h.User && numbered && gotUser == wantUser && got.Size == want.Size && slices.Equal(got.PCs, want.PCs)
			})
		})
	}
}

// fields decodes a ~m# line with user fields.
func fields(t *testing.T, line string) (s codec.Stack, u codec.User) {
	blob, err := codec.Decoder{}.ParseLine(nil, []byte(line))
	if err == nil {
		err = codec.Decoder{}.Decode(&s, &u, blob)
	}
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return s, u
}

// slow skips tests of other machines unless LWSBT_FULL is set.
func slow(t *testing.T, triple string) {
	if triple != "" && !cmdtest.Full() {
		t.Skip("LWSBT_FULL is not set")
	}
}

// check compares the core file with the output of the program: the address and size of each
// block, and the leaked blocks. same reports whether a block equals its line in the library's
// dump.
func (d *dead) check(t *testing.T, same func(h *Heap, i int) bool) {
	m, owners, from := d.open(t)
	for _, search := range []Search{{Owners: owners}, {}} {
		h, err := m.FindHeap(search)
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Blocks) != len(d.lines) || len(h.Blocks) != len(d.truth) {
			t.Fatalf("%d blocks, the library dumps %d, the program has %d", len(h.Blocks), len(d.lines), len(d.truth))
		}
		if len(h.Damage) > 0 || len(h.Notes()) > 0 {
			t.Errorf("damage %+v, notes %q", h.Damage, h.Notes())
		}
		for i := range h.Blocks {
			b := &h.Blocks[i]
			if !same(h, i) {
				t.Fatalf("block %d: %x, the library writes %s", i, h.Blob(i), d.lines[i])
			}
			if b.Addr != d.truth[i].addr || b.Size != d.truth[i].size {
				t.Fatalf("block %d: %#x, size %d, the program has %+v", i, b.Addr, b.Size, d.truth[i])
			}
		}
		l := m.FindLeaks(h, from)
		var planted, missed, invented, uncertain int
		for i, x := range d.truth {
			leak := x.label != "kept"
			if leak {
				planted++
			}
			switch r := l.Reach[i]; {
			case leak && r >= OnStack:
				missed++
				t.Errorf("missed: %s at %#x, size %d", x.label, x.addr, x.size)
			case !leak && r == Leaked:
				invented++
				t.Errorf("invented: %s at %#x, size %d", x.label, x.addr, x.size)
			case r == Uncertain:
				uncertain++
			}
		}
		t.Logf("%d blocks, %d leaks planted, %d missed, %d invented, %d uncertain", len(d.truth), planted, missed, invented, uncertain)
		var sizes [][2]int
		for _, g := range l.Groups {
			sizes = append(sizes, [2]int{len(g.Direct), len(g.Indirect)})
		}
		if want := [][2]int{{7, 0}, {3, 1}}; uncertain == 0 && !slices.Equal(sizes, want) {
			t.Errorf("groups of %v, want %v", sizes, want)
		}
	}
}

// TestLwsOverflow runs a program that writes past the end of a block into the next block.
func TestLwsOverflow(t *testing.T) {
	for i, b := range lwsBuilds[:2] {
		t.Run(b.name, func(t *testing.T) {
			slow(t, b.triple)
			d := lwsCore(t, i, "overflow")
			m, owners, _ := d.open(t)
			h, err := m.FindHeap(Search{Owners: owners})
			if err != nil {
				t.Fatal(err)
			}
			if len(h.Blocks) != len(d.truth) {
				t.Errorf("%d blocks, the program has %d", len(h.Blocks), len(d.truth))
			}
			guilty := slices.IndexFunc(d.truth, func(l liveBlock) bool { return l.size == 64 && l.label == "kept" })
			if len(h.Damage) != 1 || h.Damage[0].Suspect < 0 || h.Blocks[h.Damage[0].Suspect].Addr != d.truth[guilty].addr {
				t.Fatalf("damage %+v, want the block at %#x suspected", h.Damage, d.truth[guilty].addr)
			}
		})
	}
}
