package core

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/heap/core/types"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// profileCore crashes testdata/profile.c, and returns its core file and the table's address.
func profileCore(t *testing.T, triple, qemu, mode string, flags ...string) (d dead, m *Image, at []Symbol) {
	cc := []string{"-DON_DEVICE", "-fexceptions", "-I", testdata(t, "../../../device/include"), testdata(t, "profile.c")}
	for _, name := range strings.Fields("choose encode decode line head event parse heap trim alloc dump paths packet profile profile_blocks profile_dump sums device paths_head") {
		cc = append(cc, testdata(t, "../../../device/src/"+name+".c"))
	}
	d = die(t, triple, qemu, mode, append(cc, flags...)...)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(d.exe), "out.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, callpath.LeadIn) {
			d.lines = append(d.lines, strings.TrimSpace(line))
		}
	}
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
	list, err := types.Holding(d.exe, "lwsbt_profile")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		at = append(at, Symbol{Name: v.Name, File: d.exe, Addr: m.wrap(v.Addr + bias)})
	}
	if more, _ := m.Variables(d.exe, bias, "lwsbt_wrapped_profile"); len(at) == 0 {
		at = more
	}
	if len(at) != 1 {
		t.Fatalf("tables %v", at)
	}
	return d, m, at
}

// pathsOf returns the entries of ~p# lines, in order of paths.
func pathsOf(t *testing.T, lines []string) (list []callpath.Entry) {
	t.Helper()
	for _, line := range lines {
		var l callpath.Line
		if err := l.Parse([]byte(line)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for e := (callpath.Entry{}); l.Next(&e); {
			list = append(list, callpath.Entry{Path: e.Clone(), Live: e.Live, Bytes: e.Bytes, Allocs: e.Allocs, AllocBytes: e.AllocBytes, Peak: e.Peak})
		}
	}
	slices.SortFunc(list, compareEntries)
	return list
}

func compareEntries(a, b callpath.Entry) int {
	if c := callpath.Compare(&a.Path, &b.Path); c != 0 {
		return c
	}
	return int(a.Bytes) - int(b.Bytes)
}

// linesOf returns the ~p# lines of a recording.
func linesOf(text []byte) (list []string) {
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, callpath.LeadIn) {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// TestProfile reads the table of a program, for both word sizes and byte orders, found by
// debug information and by name. The entries must equal the library's own dump, and their
// values must equal the values that the program prints.
func TestProfile(t *testing.T) {
	for _, c := range []struct {
		name, triple, qemu, mode string
		flags                    []string
	}{
		{"x86_64", "", "", "plain", nil},
		{"x86_64-by-name-full", "", "", "full", []string{"-DWRAPPED", "-g0"}},
		{"x86_64-history", "", "", "plain", []string{"-DHISTORY"}},
		{"i686", "i686-linux-gnu", "qemu-i386", "plain", nil},
		{"i686-history", "i686-linux-gnu", "qemu-i386", "plain", []string{"-DHISTORY"}},
		{"mips", "mips-linux-gnu", "qemu-mips", "plain", nil},
		{"armhf", "arm-linux-gnueabihf", "qemu-arm", "plain", nil},
		{"s390x", "s390x-linux-gnu", "qemu-s390x", "plain", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "x86_64-history" { // of this machine, and with the most fields
				cmdtest.Long(t)
			}
			d, m, at := profileCore(t, c.triple, c.qemu, c.mode, c.flags...)
			list := m.FindProfiles(at, nil, 0)
			if len(list) != 1 || len(m.Notes()) > 0 {
				t.Fatalf("%d tables, notes %q", len(list), m.Notes())
			}
			p := list[0]

			d.checkSums(t, p, c.mode == "full")
			var out bytes.Buffer
			if err := m.WritePaths(&out, list); err != nil {
				t.Fatal(err)
			}
			got, want := pathsOf(t, linesOf(out.Bytes())), pathsOf(t, d.lines)
			same := func(a, b callpath.Entry) bool {
				return compareEntries(a, b) == 0 && a.Live == b.Live && a.Allocs == b.Allocs && a.AllocBytes == b.AllocBytes && a.Peak == b.Peak
			}
			if p.History != strings.HasSuffix(c.name, "-history") {
				t.Errorf("history: %t", p.History)
			}
			if !slices.EqualFunc(got, want, same) {
				t.Errorf("entries\n%v\nthe library writes\n%v", got, want)
			}
		})
	}
}

// checkSums compares a table with the blocks that the program prints. full means that the
// table has no space for most paths.
func (d *dead) checkSums(t *testing.T, p *Profile, full bool) {
	type sum struct{ live, bytes uint64 }
	truth, total := map[string]sum{}, sum{}
	for _, x := range d.truth {
		s := truth[x.label]
		truth[x.label] = sum{s.live + 1, s.bytes + x.size}
		total = sum{total.live + 1, total.bytes + x.size}
	}
	if live, size := p.Live(); (sum{live, size}) != total || uint64(p.Found) != total.live {
		t.Errorf("%d blocks of %d bytes, %d found; the program has %+v", live, size, p.Found, total)
	}
	var got, want []sum
	cut := uint64(0)
	for _, e := range p.Entries {
		if p.History && e.Live == 0 { // its blocks were freed
			continue
		}
		got = append(got, sum{e.Live, e.Bytes})
		if e.Cut {
			cut += e.Live
		}
	}
	for _, s := range truth {
		want = append(want, s)
	}
	order := func(a, b sum) int { return int(a.bytes) - int(b.bytes) }
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !full && (!slices.Equal(got, want) || cut > 0) {
		t.Errorf("entries of %v, the program has %v; %d blocks cut", got, want, cut)
	}
	if full && (cut == 0 || cut == total.live) {
		t.Errorf("%d of %d blocks under an outer part of their path", cut, total.live)
	}
}

// writable returns a copy of the memory of an image that can be modified.
func writable(m *Image) *Image {
	out := &Image{Word: m.Word, Order: m.Order}
	for _, s := range m.Segments() {
		if s.Write && !s.ELF && len(s.Data) < 1<<22 {
			out.add(Segment{Addr: s.Addr, Data: slices.Clone(s.Data), Write: true})
		}
	}
	return out
}

// TestProfileDamaged overwrites parts of a table. There must be a note if the sums change.
func TestProfileDamaged(t *testing.T) {
	cmdtest.Long(t)
	_, m, at := profileCore(t, "", "", "plain")
	clean := writable(m).FindProfiles(at, nil, 0)
	if len(clean) != 1 {
		t.Fatal("no table")
	}
	live, size := clean[0].Live()
	node, _ := m.Pointer(at[0].Addr + 8)
	entry, _ := m.Pointer(at[0].Addr + 16)
	used := entry + 16*uint64(clean[0].Entries[0].Number)
	innermost, _ := m.Uint(used, 2)
	leaf := node + 8*(innermost-2)

	for _, c := range []struct {
		name string
		addr uint64
		data []byte
		want string // in a note
		kept bool   // the sums do not change
	}{
		{"nodes=0", at[0].Addr + 24, []byte{0, 0}, "0 nodes, 300 entries", false},
		{"shift=9", at[0].Addr + 41, []byte{9}, "shift 9", false},
		{"node=8", at[0].Addr + 8, []byte{8, 0, 0, 0, 0, 0, 0, 0}, "its nodes are not in the image", false},
		{"entry=16", at[0].Addr + 16, []byte{16, 0, 0, 0, 0, 0, 0, 0}, "its entries are not in the image", false},
		{"ranges=16", at[0].Addr + 32, []byte{16, 0, 0, 0, 0, 0, 0, 0}, "its code ranges are not in the image", false},
		{"entry's node out of the table", used, []byte{0xff, 0xff}, "node 65535 of 900", true},
		{"entry's bits", used + 3, []byte{0xff}, "was overwritten: left out", false},
		{"entry's live", used + 4, []byte{0x7f}, "were found", false},
		{"entry's bytes", used + 8, []byte{1, 2, 3, 4, 5, 6, 7, 8}, "more than there is memory", true},
		{"node never used", leaf, make([]byte, 8), "is not in use", true},
		{"node that is its own parent", leaf, []byte{byte(innermost), byte(innermost>>8) | 4, 0, 0, 0, 0, 0, 0}, "or a loop", true},
		{"node out of the code", leaf, []byte{0, 0, 0, 0, 0, 0, 0, 0x40}, "is in no code range", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := writable(m)
			copy(bad.Find(c.addr).Data[c.addr-bad.Find(c.addr).Addr:], c.data)
			list := bad.FindProfiles(at, nil, 0)
			if notes := strings.Join(bad.Notes(), "\n"); !strings.Contains(notes, c.want) {
				t.Errorf("notes %q, want %q", notes, c.want)
			}
			if !c.kept {
				return
			}
			if len(list) != 1 {
				t.Fatalf("%d tables", len(list))
			}
			if n, b := list[0].Live(); n != live || b != size {
				t.Errorf("%d blocks of %d bytes, want %d of %d", n, b, live, size)
			}
		})
	}

	rnd := rand.New(rand.NewPCG(21, 1))
	bad := writable(m)
	for range 200 {
		addr := []uint64{at[0].Addr + rnd.Uint64N(64), node + rnd.Uint64N(900*8), entry + rnd.Uint64N(300*16)}[rnd.IntN(3)]
		s := bad.Find(addr)
		b := &s.Data[addr-s.Addr]
		old := *b
		*b = byte(rnd.Uint32())
		bad.notes = notes{}
		list := bad.FindProfiles(at, nil, 0)
		switch {
		case len(bad.Notes()) > 0:
		case len(list) != 1:
			t.Fatalf("byte %#x: %d → %d: no table, and no note", addr, old, *b)
		default:
			if n, x := list[0].Live(); n != live || x != size {
				t.Fatalf("byte %#x: %d → %d: %d blocks of %d bytes, want %d of %d, and no note", addr, old, *b, n, x, live, size)
			}
		}
		*b = old
	}
}
