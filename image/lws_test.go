package image

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// lwsBuilds are builds of the real library, by their names in ref-c/builds.txt.
// They are looked for in LWS_PREFIXES; the first also in LWS_PREFIX.
var lwsBuilds = []struct{ name, triple, qemu string }{
	{"x86_64-gcc12-O2", "", ""},
	{"i686-gcc12-O2", "i686-linux-gnu", ""},
	{"mips-gcc12-O2", "mips-linux-gnu", "qemu-mips"},
	{"mipsel-gcc12-O2", "mipsel-linux-gnu", "qemu-mipsel"},
	{"ppc-gcc12-O2", "powerpc-linux-gnu", "qemu-ppc"},
	{"s390x-gcc12-O2", "s390x-linux-gnu", "qemu-s390x"},
	{"armhf-gcc12-O2", "arm-linux-gnueabihf", "qemu-arm"},
	{"aarch64-gcc12-O2", "aarch64-linux-gnu", "qemu-aarch64"},
}

// lwsPrefix returns where a build of the library is installed, or skips the test.
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

// dead is a program that died, and what it said of itself before.
type dead struct {
	core, exe string
	truth     []liveBlock
	lines     []string // ~m#
}

type liveBlock struct {
	addr, size uint64
	label      string
}

// lwsCore has a program on the real library die.
func lwsCore(t *testing.T, build int, mode string) (d dead) {
	b := lwsBuilds[build]
	prefix := lwsPrefix(t, b.name)
	cc := []string{"-g", "-O2", "-w", "-isystem", filepath.Join(prefix, "include"), testdata(t, "lwsheap.c"), filepath.Join(prefix, "lib", "libwebsockets.a")}
	if b.qemu != "" {
		d.core, d.exe = guestCore(t, b.triple, b.qemu, mode+",die > out.txt", cc...)
	} else {
		need(t, "gdb")
		dir := t.TempDir()
		d.exe = filepath.Join(dir, "lwsheap")
		args, gcc := append(cc, "-o", d.exe), "gcc"
		if b.triple != "" {
			gcc, args = b.triple+"-gcc", append(args, "-static")
		}
		need(t, gcc)
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

// open reads the core file and returns where its program's data are.
func (d *dead) open(t *testing.T) (m *Image, owners []Symbol, data []Map) {
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
	owners, err := m.Variables(d.exe, bias, "active")
	if err != nil || len(owners) == 0 {
		t.Fatalf("owners %v, %v", owners, err)
	}
	data, err = m.WritableRanges(d.exe, bias)
	if err != nil || len(data) == 0 {
		t.Fatalf("data %v, %v", data, err)
	}
	return m, owners, data
}

// TestLwsHeap reads the heap of the real library: the same blocks in the same
// order as its own dump has them, at the addresses and of the sizes that the
// program noted; those that were planted as leaks are leaked, and no other.
func TestLwsHeap(t *testing.T) {
	for i, b := range lwsBuilds {
		t.Run(b.name, func(t *testing.T) {
			d := lwsCore(t, i, "plain")
			m, owners, data := d.open(t)
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
					if got := string(codec.AppendLine(nil, b.Blob)); got != d.lines[i] {
						t.Fatalf("block %d: %s, the library writes %s", i, got, d.lines[i])
					}
					if b.Addr != d.truth[i].addr || b.Size != d.truth[i].size {
						t.Fatalf("block %d: %#x, size %d, the program has %+v", i, b.Addr, b.Size, d.truth[i])
					}
				}
				l := m.FindLeaks(h, data)
				var missed, invented, uncertain int
				for i, x := range d.truth {
					planted := x.label != "kept"
					switch r := l.Reach[i]; {
					case planted && r == Reachable:
						missed++
						t.Errorf("missed: %s at %#x, size %d", x.label, x.addr, x.size)
					case !planted && r == Leaked:
						invented++
						t.Errorf("invented: %s at %#x, size %d", x.label, x.addr, x.size)
					case r == Uncertain:
						uncertain++
					}
				}
				t.Logf("%d blocks, %d missed, %d invented, %d uncertain, %d groups", len(d.truth), missed, invented, uncertain, len(l.Groups))
				var sizes [][2]int
				for _, g := range l.Groups {
					sizes = append(sizes, [2]int{len(g.Direct), len(g.Indirect)})
				}
				if want := [][2]int{{7, 0}, {3, 1}}; uncertain == 0 && !slices.Equal(sizes, want) {
					t.Errorf("groups of %v, want %v", sizes, want)
				}
			}
		})
	}
}

// TestLwsOverflow has the program write past the end of a block into the next one.
func TestLwsOverflow(t *testing.T) {
	for i, b := range lwsBuilds[:2] {
		t.Run(b.name, func(t *testing.T) {
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
