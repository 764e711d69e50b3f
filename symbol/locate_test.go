package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// tinyELF writes a 32-bit little-endian program with code at text and one
// function that covers it.
func tinyELF(t testing.TB, machine elf.Machine, text uint32, code []byte, fn string) string {
	t.Helper()
	const head = 52 + 32
	names := "\x00.text\x00.symtab\x00.strtab\x00"
	strs := "\x00" + fn + "\x00"
	off := uint32(head)
	codeOff := off
	off += uint32(len(code))
	symOff := off
	off += 32
	strOff := off
	off += uint32(len(strs))
	nameOff := off
	off += uint32(len(names))
	var b bytes.Buffer
	put := func(v any) { binary.Write(&b, binary.LittleEndian, v) }
	put(elf.Header32{Ident: [16]byte{0x7f, 'E', 'L', 'F', 1, 1, 1}, Type: uint16(elf.ET_EXEC), Machine: uint16(machine),
		Version: 1, Entry: text, Phoff: 52, Shoff: off, Ehsize: 52, Phentsize: 32, Phnum: 1, Shentsize: 40, Shnum: 5, Shstrndx: 4})
	put(elf.Prog32{Type: uint32(elf.PT_LOAD), Off: codeOff, Vaddr: text, Filesz: uint32(len(code)), Memsz: uint32(len(code)), Flags: 5})
	b.Write(code)
	put(elf.Sym32{})
	put(elf.Sym32{Name: 1, Value: text, Size: uint32(len(code)), Info: 2, Shndx: 1})
	b.WriteString(strs)
	b.WriteString(names)
	put(elf.Section32{})
	put(elf.Section32{Name: 1, Type: uint32(elf.SHT_PROGBITS), Flags: 6, Addr: text, Off: codeOff, Size: uint32(len(code))})
	put(elf.Section32{Name: 7, Type: uint32(elf.SHT_SYMTAB), Off: symOff, Size: 32, Link: 3, Entsize: 16})
	put(elf.Section32{Name: 15, Type: uint32(elf.SHT_STRTAB), Off: strOff, Size: uint32(len(strs))})
	put(elf.Section32{Name: 15, Type: uint32(elf.SHT_STRTAB), Off: nameOff, Size: uint32(len(names))})
	path := filepath.Join(t.TempDir(), fn+".elf")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A return address of an ESP32 has the size of a register window in its top two
// bits; the code is at 0x4…, and the call 3 bytes before.
func TestXtensaWindows(t *testing.T) {
	code := []byte{0x36, 0x41, 0x00, 0xa5, 0x01, 0x00, 0x1d, 0xf0} // entry; call8; retw.n
	r := process(t, tinyELF(t, elf.EM_XTENSA, 0x400d1000, code, "app_main"))
	for _, pc := range []uint64{0x400d1006, 0x800d1006, 0xc00d1006, 0x000d1006} {
		s := r.at(pc)
		if len(s.Frames) != 1 || s.Frames[0].Func != "app_main" || s.Own != 0x400d1006 || s.Call != pc-1 {
			t.Errorf("%#x: %+v, want app_main at 0x400d1006", pc, s)
		}
	}
	f := r.Files()[0]
	if !f.FollowsCall(0x400d1006) || f.FollowsCall(0x400d1003) || f.FollowsCall(0x400d1008) {
		t.Error("the call8 at 0x400d1003 is not what is found")
	}
	if s := r.at(0x3ffb0000); s.Module != nil || len(s.Frames) != 0 {
		t.Errorf("data at 0x3ffb0000: %+v", s)
	}
}

// Where debug information was looked for is of use for files that the user named.
func TestNotesOnLibrariesAreShort(t *testing.T) {
	path := buildC(t, []string{"gcc", "-O1", "-no-pie", "-fno-pie"}, "prog.c", "other.c")
	named := process(t, path)
	f := named.Files()[0]
	at := symbolAddr(t, f, "sum") + 4
	named.at(at)
	const short = "it has no debug information, so functions have no lines"
	if notes := allNotes(named); len(notes) != 1 || !strings.Contains(notes[0], path+": "+short+" (looked for ") {
		t.Errorf("of a file that is named: %q", notes)
	}
	p := configured(t, Config{Sysroots: []string{"/"}})
	low, high := f.extent()
	p.Map([]Mapping{{Start: low, End: high, Exec: true, Module: &Module{Name: path}}})
	p.Locate(at)
	if notes := allNotes(p); !slices.Equal(notes, []string{path + ": " + short}) {
		t.Errorf("of a module: %q", notes)
	}
}

// Return addresses into Thumb code are odd.
func TestThumb(t *testing.T) {
	path := buildC(t, []string{"arm-linux-gnueabihf-gcc", "-mthumb", "-O1", "-g", "-no-pie"}, "prog.c", "other.c")
	r := process(t, path)
	f := r.Files()[0]
	var in, out uint64
	for _, s := range f.Functions() {
		if s.Name == "sum" {
			in, out = s.Addr, s.Addr+s.Size
		}
	}
	n := 0
	for pc := in + 2; pc <= out; pc += 2 {
		if !f.FollowsCall(pc | 1) {
			continue
		}
		n++
		s := r.at(pc | 1)
		want, _ := f.Lookup(nil, pc-2)
		if len(want) == 0 || len(s.Frames) != len(want) || s.Frames[0].Func != want[0].Func || s.Frames[0].Line != want[0].Line {
			t.Errorf("%#x: %+v, want %+v", pc|1, s.Frames, want)
		}
	}
	if in&1 != 0 || n < 2 {
		t.Errorf("%d calls in sum at %#x", n, in)
	}
}

// A return address is after the call, possibly on another line, so the call is looked up.
func TestCallIsLookedUp(t *testing.T) {
	path := buildC(t, []string{"gcc", "-O0", "-g", "-no-pie"}, "prog.c", "other.c")
	text, err := os.ReadFile(source(t, "prog.c"))
	if err != nil {
		t.Fatal(err)
	}
	callLine := 1 + strings.Count(string(text[:bytes.Index(text, []byte("root = insert(root, key, i);"))]), "\n")
	f := open(t, path)
	var ret uint64 // of the call of insert in main
	for pc := symbolAddr(t, f, "main"); ret == 0; pc++ {
		frames, err := f.Lookup(nil, pc)
		if err != nil || len(frames) == 0 {
			t.Fatalf("no call of insert in main up to %#x: %v", pc, err)
		}
		if f.FollowsCall(pc) {
			if at, _ := f.Lookup(nil, pc-1); at[0].Line == callLine {
				ret = pc
			}
		}
	}
	// After a call whose value is not used, the next line begins.
	dropRet := ret
	for pc := ret; ; pc++ {
		at, _ := f.Lookup(nil, pc)
		before, _ := f.Lookup(nil, pc-1)
		if f.FollowsCall(pc) && at[0].Line != before[0].Line {
			dropRet = pc
			break
		}
	}
	before, _ := f.Lookup(nil, dropRet-1)
	r := configured(t, Config{Files: []FileSpec{{Path: path}}})
	defer r.Close()
	if got, want := r.at(dropRet).Frames[0].Line, before[0].Line; got != want {
		t.Errorf("line %d, want %d", got, want)
	}
	// The start of a function follows no call, as where a signal came in.
	start := symbolAddr(t, f, "sum")
	if got := r.at(start); got.Call != start {
		t.Errorf("%#x is looked up for %#x", got.Call, start)
	}
}

// Ambiguous files, each at its base; and a file that is not the one that ran.
func TestGivenFiles(t *testing.T) {
	a := tinyELF(t, elf.EM_386, 0x1000, bytes.Repeat([]byte{0xff, 0xd0}, 40), "first")  // call *%eax, over and over
	b := tinyELF(t, elf.EM_386, 0x1000, bytes.Repeat([]byte{0x90, 0x90}, 40), "second") // nop
	var c Config
	for _, arg := range []string{a, b + "@+0x40000000"} {
		g, err := ParseFileSpec(arg)
		if err != nil {
			t.Fatal(err)
		}
		c.Files = append(c.Files, g)
	}
	r := configured(t, c)
	for i := range uint64(8) {
		if s := r.at(0x1002 + 2*i); len(s.Frames) != 1 || s.Frames[0].Func != "first" {
			t.Errorf("%+v, want first", s)
		}
		if s := r.at(0x40001002 + 2*i); len(s.Frames) != 1 || s.Frames[0].Func != "second" || s.Own != 0x1002+2*i {
			t.Errorf("%+v, want second", s)
		}
	}
	if _, err := ParseFileSpec("app@there"); err == nil || !strings.Contains(err.Error(), "expected PATH@0xADDR") {
		t.Errorf("app@there: %v", err)
	}
}

// A module's file must have the module's build-id.
func TestBuildIDOfModules(t *testing.T) {
	path := buildC(t, []string{"gcc", "-O0", "-g", "-pie", "-Wl,--build-id"}, "prog.c", "other.c")
	f := open(t, path)
	at := symbolAddr(t, f, "sum") + 4
	for _, c := range []struct{ id, want, note string }{
		{f.BuildID, "sum", ""},
		{strings.Repeat("ab", 20), "", "build-id " + f.BuildID + ", but what was loaded had abab"},
	} {
		p := process(t, path)
		low, high := f.extent()
		p.Map([]Mapping{{Start: 0x5500_0000_0000 + low, End: 0x5500_0000_0000 + high, Exec: true, Relative: true, Offset: low,
			Module: &Module{Name: "prog", BuildID: c.id}}})
		s, blob := lossy(t, codec.MachineWrap64, []uint64{0x5500_0000_0000 + at})
		places := p.Resolve(nil, s, blob)
		got := ""
		if len(places[0].Frames()) > 0 {
			got = places[0].Frames()[0].Func
		}
		if got != c.want || places[0].State != Inferred {
			t.Errorf("build-id %s: %q, %v, want %q", c.id, got, places[0].State, c.want)
		}
		if notes := strings.Join(allNotes(p), "\n"); c.note != "" && !strings.Contains(notes, c.note) {
			t.Errorf("build-id %s: notes %q, want one with %q", c.id, notes, c.note)
		}
	}
}

func TestDemangle(t *testing.T) {
	for name, want := range map[string]string{
		"_ZN6shapes4makeEii":                               "shapes::make(int, int)",
		"_ZNSt6vectorIiSaIiEE9push_backERKi":               "std::vector<int, std::allocator<int> >::push_back(int const&)",
		"_RNvC6_123foo3bar":                                "123foo::bar",
		"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE": "core::fmt::Write::write_fmt",
		"main":          "main",
		"main.(*T).run": "main.(*T).run",
		"_start":        "_start",
		"_ZN6shapes4ma": "_ZN6shapes4ma",
		"":              "",
	} {
		if got := demangled(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Notes come once, however often a thing is met.
func TestNotesOnce(t *testing.T) {
	p := process(t)
	p.Map([]Mapping{{Start: 0x1000, End: 0x2000, Exec: true, Module: &Module{Name: "/no/such.so"}}})
	for pc := uint64(0x1000); pc < 0x1800; pc++ {
		p.Locate(pc)
	}
	if notes := allNotes(p); !slices.Equal(notes, []string{"/no/such.so: no such file (looked for /no/such.so)"}) {
		t.Errorf("%q", notes)
	}
}
