package symbol

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// checkFile does all that can be done with a file, twice, and wants the same both
// times, nothing that could control a terminal, and no caught panic.
func checkFile(t *testing.T, data []byte) {
	path := filepath.Join(t.TempDir(), "fuzzed")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	all := func() string {
		var b strings.Builder
		p, err := NewProcess(Config{Files: []FileSpec{{Path: path}}})
		if err != nil {
			return err.Error()
		}
		defer p.Close()
		f := p.Files()[0]
		fmt.Fprintln(&b, f.BuildID, f.Why(), f.Word, f.Machine, f.calls().n)
		low, high := f.extent()
		addrs := []uint64{0, low, high, ^uint64(0), codeAddr, codeAddr + 5}
		for i := range uint64(16) {
			addrs = append(addrs, low+(high-low)/16*i)
		}
		for _, pc := range addrs {
			a := p.Locate(pc)
			fmt.Fprintln(&b, a, a.Location != nil && a.Location.Module != nil, a.Frames(), a.Missing(), f.FollowsCall(pc))
			if len(a.Frames()) == 0 && a.Missing() == "" {
				t.Errorf("%#x: nothing, and no reason", pc)
			}
		}
		for _, fn := range f.Functions() {
			fmt.Fprint(&b, fn.Addr, fn.Size)
		}
		for _, n := range allNotes(p) {
			fmt.Fprintln(&b, n)
		}
		return b.String()
	}
	first := all()
	if again := all(); again != first {
		t.Errorf("the second time\n%s\nafter\n%s", again, first)
	}
	if strings.Contains(first, "runtime error") {
		t.Errorf("a panic was caught: %s", first)
	}
	for l := range strings.Lines(first) {
		if l = strings.TrimSuffix(l, "\n"); printable.Text(l) != l {
			t.Errorf("not safe to print: %q", l)
		}
	}
}

// Any bytes as a file.
func FuzzELF(f *testing.F) {
	for _, h := range hostile {
		if data := h.build(); len(data) < 8<<10 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 0 {
			checkFile(t, data)
		}
	})
}

// Any bytes as the sections that debug information is in.
func FuzzDWARF(f *testing.F) {
	line := lines4(setCodeAddr, 0x21, 0x80, endSequence)
	f.Add(abbrevs, unit4(0, unitRoot, 2, "f", uint64(codeAddr), uint64(codeSize), 0), line, []byte{}, []byte("s\x00"), []byte{})
	f.Add(abbrevs, unit4(0, unitRoot, 3, uint32(0), 0), line, asm(uint64(codeAddr), uint64(codeAddr+9), uint64(0), uint64(0)), []byte{}, []byte{})
	f.Add(abbrevs, unit4(0, unitRoot, 2, "f", uint64(codeAddr), uint64(codeSize), 0), line, []byte{}, []byte("s\x00"),
		asm(uint32(44), uint16(2), uint32(0), 8, 0, uint32(0), uint64(codeAddr), uint64(codeSize), make([]byte, 16)))
	five := asm(1, 0x11, 1, 0x03, 0x25, 0x11, 0x1b, 0x12, 0x0b, 0x10, 0x17, 0x55, 0x23, 0, 0,
		2, 0x2e, 1, 0x6e, 0x0e, 0x55, 0x23, 0x31, 0x13, 0, 0, 3, 0x1d, 0, 0x31, 0x16, 0x58, 0x0b, 0x59, 0x0b, 0x11, 0x1b, 0x12, 0x06, 0, 0, 0)
	unit5 := asm(uint16(5), 1, 8, uint32(0), 1, 0, 0, 0x80, uint32(0), 0, 2, uint32(0), 0, uint32(12), 3, 12, 1, 1, 0, uint32(8), 0, 0)
	line5 := asm(1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 8, 1, "dir", 2, 1, 8, 2, 0x0b, 1, "f.c", 0)
	line5 = asm(uint16(5), 8, 0, uint32(len(line5)), line5, setCodeAddr, 0x21, endSequence)
	f.Add(five, asm(uint32(len(unit5)), unit5), asm(uint32(len(line5)), line5), asm(uint32(20), uint16(5), 8, 0, uint32(1), uint32(4), 7, uint64(codeAddr), 64, 0),
		[]byte("_Z1fv\x00s\x00"), asm(uint32(12), uint16(5), 8, 0, uint64(codeAddr)))
	f.Fuzz(func(t *testing.T, abbrev, info, line, ranges, str, addrs []byte) {
		checkFile(t, makeELF(debugSection(".debug_abbrev", abbrev), debugSection(".debug_info", info), debugSection(".debug_line", line),
			debugSection(".debug_ranges", ranges), debugSection(".debug_rnglists", ranges), debugSection(".debug_str", str),
			debugSection(".debug_line_str", str), debugSection(".debug_addr", addrs), debugSection(".debug_aranges", addrs), debugSection(".debug_str_offsets", addrs)))
	})
}

// Any memory map that ReadMaps accepts can be used.
func FuzzMaps(f *testing.F) {
	f.Add("1000-2000 r-xp 00000000 fe:00 1 /a b\n2000-3000 r--p 0 0:0 0\n")
	f.Add("1800-2800 r-xp 00000000 fe:00 1 /a (deleted)\n1000-2000 rw-p 10 0:0 0 [heap]\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ReadMaps(strings.NewReader(text), "fuzzed")
		if err != nil {
			if s := err.Error(); printable.Text(s) != s {
				t.Errorf("not safe to print: %q", s)
			}
			return
		}
		var tl timeline
		tl.set(list)
		checkSpace(t, &tl.space, list)
	})
}

// checkSpace looks both ends of each mapping up, beside a list.
func checkSpace(t *testing.T, s *space, list []Mapping) {
	for _, of := range list[:min(len(list), 50)] {
		for _, addr := range []uint64{of.Start - 1, of.Start, of.End - 1, of.End} {
			var want *Module
			for _, m := range slices.Backward(list) {
				if m.Start <= addr && addr < m.End {
					want = m.Module
					break
				}
			}
			var got *Module
			if m := s.find(addr); m != nil {
				got = m.Module
			}
			if got != want {
				t.Fatalf("%#x is in %+v, want %+v", addr, got, want)
			}
			s.appendMatches(nil, addr)
		}
	}
}
