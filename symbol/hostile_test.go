package symbol

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/symbol/internal/dwarf"
)

// testSection is a section of a file that a test makes up.
type testSection struct {
	name  string
	kind  elf.SectionType
	flags elf.SectionFlag
	addr  uint64
	data  []byte
	link  uint32 // index + 1 in the list
	name2 uint32 // offset of the name, if not 0
	same  bool   // its bytes are those of the section before
}

// codeAddr and codeSize are where the code of synthetic files is.
const codeAddr, codeSize = 0x400000, 0x1000

// makeELF writes a 64-bit little-endian x86-64 program of the sections, with
// .text, and a symbol "known" that covers its first half.
func makeELF(list ...testSection) []byte {
	le := binary.LittleEndian
	var symtab bytes.Buffer
	binary.Write(&symtab, le, elf.Sym64{})
	binary.Write(&symtab, le, elf.Sym64{Name: 1, Info: byte(elf.STT_FUNC), Shndx: 1, Value: codeAddr, Size: codeSize / 2})
	list = append([]testSection{
		{name: ".text", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, addr: codeAddr, data: bytes.Repeat([]byte{0xff, 0xd0}, codeSize/2)},
		{name: ".symtab", kind: elf.SHT_SYMTAB, data: symtab.Bytes(), link: 3},
		{name: ".strtab", kind: elf.SHT_STRTAB, data: []byte("\x00known\x00")},
	}, list...)
	names := []byte{0}
	var body bytes.Buffer
	headers := []elf.Section64{{}}
	const start = 64 + 56
	for i, s := range list {
		h := elf.Section64{Name: uint32(len(names)), Type: uint32(s.kind), Flags: uint64(s.flags), Addr: s.addr,
			Off: uint64(start + body.Len()), Size: uint64(len(s.data)), Link: s.link}
		if s.name2 != 0 {
			h.Name = s.name2
		} else {
			names = append(append(names, s.name...), 0)
		}
		if s.same {
			h.Off, h.Size = headers[i].Off, headers[i].Size
		}
		headers = append(headers, h)
		body.Write(s.data)
	}
	headers = append(headers, elf.Section64{Name: uint32(len(names)), Type: uint32(elf.SHT_STRTAB), Off: uint64(start + body.Len()), Size: uint64(len(names) + 10)})
	body.Write(append(names, ".shstrtab\x00"...))
	var out bytes.Buffer
	binary.Write(&out, le, elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_EXEC),
		Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Shoff: uint64(start + body.Len()), Ehsize: 64,
		Phentsize: 56, Phnum: 1, Shentsize: 64, Shnum: uint16(len(headers)), Shstrndx: uint16(len(headers) - 1)})
	binary.Write(&out, le, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 5, Off: start, Vaddr: codeAddr, Filesz: codeSize, Memsz: codeSize})
	out.Write(body.Bytes())
	binary.Write(&out, le, headers)
	return out.Bytes()
}

// namedByChain is a file with a function for each of 256 addresses, all named by one
// entry that has the attributes attrs with the value, and refers to itself for its name.
func namedByChain(attrs, value []byte) []byte {
	const step = codeSize / 256
	function := asm(2, 0x2e, 0, 0x11, 0x01, 0x12, 0x07, 0x31, 0x10, 0, 0)
	chained := asm(3, 0x2e, 0, attrs, 0x31, 0x10, 0, 0)
	root := asm(4, 0x11, 1, 0, 0)
	first := unit4(0, unitRoot, make([]byte, 256*21), 0)
	const header = 4 + 2 + 4 + 1
	at := uint32(len(first) + header + 1)
	functions := repeat(256, func(i int) []byte {
		return asm(2, uint64(codeAddr+i*step), uint64(step), at)
	})
	return makeELF(debugSection(".debug_abbrev", asm(abbrevUnit, function, chained, root, 0)),
		debugSection(".debug_info", asm(unit4(0, unitRoot, functions, 0), unit4(0, 4, 3, value, at, 0))),
		debugSection(".debug_line", lines4(setCodeAddr, 0x20, endSequence)))
}

func debugSection(name string, data []byte) testSection {
	return testSection{name: name, kind: elf.SHT_PROGBITS, data: data}
}

// asm puts bytes together: ints are bytes, strings end with a zero, uint16, uint32
// and uint64 are little-endian, []byte is as it is.
func asm(parts ...any) (b []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case string:
			b = append(append(b, p...), 0)
		case []byte:
			b = append(b, p...)
		case uint16:
			b = binary.LittleEndian.AppendUint16(b, p)
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, p)
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, p)
		default:
			panic(fmt.Sprintf("asm: %T", p))
		}
	}
	return b
}

// unit4 is a unit of DWARF 4 with 8-byte addresses.
func unit4(abbrev uint32, entries ...any) []byte {
	b := asm(append([]any{uint16(4), abbrev, 8}, entries...)...)
	return asm(uint32(len(b)), b)
}

// Abbreviations: 1, a unit with low and high PC and lines; 2, a function with a
// name, low and high PC; 3, one with ranges.
var (
	abbrevUnit = asm(1, 0x11, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0)
	abbrevFunc = asm(2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0)
	abbrevRngs = asm(3, 0x2e, 0, 0x55, 0x17, 0, 0)
	abbrevs    = asm(abbrevUnit, abbrevFunc, abbrevRngs, 0)
	unitRoot   = asm(1, "u.c", uint64(codeAddr), uint64(codeSize), uint32(0))
)

// lines4 is a line table of DWARF 4 with one file and a program.
func lines4(program ...any) []byte {
	header := asm(1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, "u.c", 0, 0, 0, 0)
	rest := asm(append([]any{uint16(4), uint32(len(header)), header}, program...)...)
	return asm(uint32(len(rest)), rest)
}

var (
	setCodeAddr = asm(0, 9, 2, uint64(codeAddr))
	endSequence = asm(2, 0x80, 0x1f, 0, 1, 1)
)

func repeat(n int, each func(i int) []byte) (b []byte) {
	for i := range n {
		b = append(b, each(i)...)
	}
	return b
}

// zeros is 100 MB of zeros, deflated.
var zeros = sync.OnceValue(func() []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	w.Write(make([]byte, 100<<20))
	w.Close()
	return out.Bytes()
})

// doubling is a mangled name in which each of n types has the one before it twice.
func doubling(n int) string {
	// What was named before is S_, S0_, S1_ ...: f, n times b, a, and then the types
	// as they end.
	seq := func(i int) string { return "S" + strings.ToUpper(strconv.FormatInt(int64(i-1), 36)) + "_" }
	var b strings.Builder
	b.WriteString("_Z1fI" + strings.Repeat("1bI", n) + "1a")
	for i := range n {
		b.WriteString(seq(1+n+i) + "E")
	}
	return b.String() + "Evv"
}

// hostile has files that take too much memory or time without a budget, named by their fault.
var hostile = []struct {
	name  string
	build func() []byte
	says  string // what Why, or the error of Open, must say
}{
	{"nothing is wrong", func() []byte {
		return makeELF(debugSection(".debug_abbrev", abbrevs), debugSection(".debug_info", unit4(0, unitRoot, 2, "f", uint64(codeAddr), uint64(codeSize), 0)),
			debugSection(".debug_line", lines4(setCodeAddr, 0x20, endSequence)))
	}, ""},
	{"100 MB of line table in 100 KB", func() []byte {
		s := debugSection(".debug_line", asm(uint32(elf.COMPRESS_ZLIB), uint32(0), uint64(100<<20), uint64(1), zeros()))
		s.flags = elf.SHF_COMPRESSED
		return makeELF(debugSection(".debug_abbrev", abbrevs), debugSection(".debug_info", unit4(0, unitRoot, 0)), s)
	}, "more memory or time"},
	{"100 MB of .zdebug line table in 100 KB", func() []byte {
		size := binary.BigEndian.AppendUint64(nil, 100<<20)
		return makeELF(debugSection(".debug_abbrev", abbrevs), debugSection(".debug_info", unit4(0, unitRoot, 0)),
			debugSection(".zdebug_line", asm([]byte("ZLIB"), size, zeros())))
	}, "more memory or time"},
	{"an abbreviation table for each unit, each the rest of one", func() []byte {
		const n = 9000
		table := repeat(n, func(int) []byte { return asm(1, 0x11, 1, 0x03, 0x08, 0, 0) })
		return makeELF(debugSection(".debug_abbrev", asm(table, 0)), debugSection(".debug_info",
			repeat(n, func(i int) []byte { return unit4(uint32(7*i), 1, "u", 0) })))
	}, "more memory or time"},
	{"roots whose abbreviation is the last of many", func() []byte {
		table := repeat(20_000, func(int) []byte { return asm(2, 0x24, 0, 0x03, 0x08, 0x0b, 0x0b, 0, 0) })
		return makeELF(debugSection(".debug_abbrev", asm(table, abbrevUnit, 0)), debugSection(".debug_info",
			repeat(6000, func(int) []byte { return unit4(0, unitRoot, 0) })))
	}, "more memory or time"},
	{"functions that share a long range list", func() []byte {
		list := repeat(4000, func(i int) []byte { return asm(uint64(codeAddr+i%100), uint64(codeAddr+200+i%100)) })
		return makeELF(debugSection(".debug_abbrev", abbrevs), debugSection(".debug_ranges", asm(list, uint64(0), uint64(0))),
			debugSection(".debug_info", unit4(0, unitRoot, repeat(30_000, func(int) []byte { return asm(3, uint32(0)) }), 0)),
			debugSection(".debug_line", lines4(setCodeAddr, 0x20, endSequence)))
	}, "more memory or time"},
	{"units that all claim all code", func() []byte {
		return makeELF(debugSection(".debug_abbrev", abbrevs), debugSection(".debug_info",
			repeat(20_000, func(int) []byte { return unit4(0, unitRoot, 0) })), debugSection(".debug_line", lines4(setCodeAddr, 0x20, endSequence)))
	}, ""},
	{"a row for each byte of a line program", func() []byte {
		return makeELF(debugSection(".debug_abbrev", abbrevs), debugSection(".debug_info", unit4(0, unitRoot, 0)),
			debugSection(".debug_line", lines4(setCodeAddr, bytes.Repeat([]byte{0x21}, 4<<20), endSequence)))
	}, ""},
	{"sequences behind one that holds all", func() []byte {
		seq := asm(0, 9, 2, uint64(codeAddr+0x10), 0x20, 2, 1, 0, 1, 1)
		return makeELF(debugSection(".debug_abbrev", abbrevs), debugSection(".debug_info", unit4(0, unitRoot, 0)),
			debugSection(".debug_line", lines4(setCodeAddr, 0x20, endSequence, bytes.Repeat(seq, 20_000))))
	}, ""},
	{"a file table of 2^60 empty entries", func() []byte {
		header := asm(1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0x21, bytes.Repeat([]byte{0x80}, 8), 0x10)
		rest := asm(uint16(5), 8, 0, uint32(len(header)), header, setCodeAddr)
		return makeELF(debugSection(".debug_abbrev", abbrevs), debugSection(".debug_info", unit4(0, unitRoot, 0)),
			debugSection(".debug_line", asm(uint32(len(rest)), rest)))
	}, ""},
	{"names without an end", func() []byte {
		strp := asm(1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0, 2, 0x2e, 0, 0x03, 0x0e, 0x11, 0x01, 0x12, 0x07, 0, 0, 0)
		return makeELF(debugSection(".debug_abbrev", strp), debugSection(".debug_str", bytes.Repeat([]byte{'n'}, 1<<20)),
			debugSection(".debug_info", unit4(0, 1, uint64(codeAddr), uint64(codeSize), uint32(0), repeat(codeSize, func(i int) []byte {
				return asm(2, uint32(i), uint64(codeAddr+i), uint64(1))
			}), 0)), debugSection(".debug_line", lines4(setCodeAddr, 0x20, endSequence)))
	}, ""},
	{"entries that nest without an end", func() []byte {
		nest := asm(abbrevUnit, 2, 0x0b, 1, 0, 0, 0)
		return makeELF(debugSection(".debug_abbrev", nest), debugSection(".debug_info", unit4(0, unitRoot, bytes.Repeat([]byte{2}, 1<<20))),
			debugSection(".debug_line", lines4(setCodeAddr, 0x20, endSequence)))
	}, ""},
	{"units behind a number of 500,000 bytes", func() []byte {
		long := asm(2, 0x24, 0, bytes.Repeat([]byte{0x80}, 500_000), 0x3e, 0x0b, 0, 0)
		return makeELF(debugSection(".debug_abbrev", asm(long, abbrevUnit, 0)), debugSection(".debug_info",
			repeat(10_000, func(int) []byte { return unit4(0, unitRoot, 0) })))
	}, "a number has more than 16 bytes"},
	{"functions named by way of entries of 300,000 attributes", func() []byte {
		return namedByChain(bytes.Repeat(asm(0x49, 0x19), 300_000), nil)
	}, ""},
	{"functions named by way of an entry with a string of 1 MB", func() []byte {
		return namedByChain(asm(0x25, 0x08), append(bytes.Repeat([]byte{'s'}, 1<<20), 0))
	}, ""},
	{"calls inlined into each other 4,000 times", func() []byte {
		inline := asm(2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, 3, 0x1d, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, 0)
		return makeELF(debugSection(".debug_abbrev", asm(abbrevUnit, inline)), debugSection(".debug_info",
			unit4(0, unitRoot, 2, "f", uint64(codeAddr), uint64(codeSize), bytes.Repeat(asm(3, "g", uint64(codeAddr), uint64(codeSize)), 4000), make([]byte, 4002))),
			debugSection(".debug_line", lines4(setCodeAddr, 0x20, endSequence)))
	}, ""},
	{"10,000 sections with one long name", func() []byte {
		list := []testSection{{name: strings.Repeat("n", 400_000), kind: elf.SHT_PROGBITS}}
		for range 10_000 {
			list = append(list, testSection{kind: elf.SHT_PROGBITS, name2: uint32(len(".text") + len(".symtab") + len(".strtab") + 4)})
		}
		return makeELF(list...)
	}, "names of its sections"},
	{"60,000 symbols with one long name", func() []byte {
		var b bytes.Buffer
		for i := range 60_000 {
			binary.Write(&b, binary.LittleEndian, elf.Sym64{Name: 1, Info: byte(elf.STT_FUNC), Shndx: 1, Value: codeAddr + uint64(i%codeSize), Size: 1})
		}
		return makeELF(testSection{name: ".more", kind: elf.SHT_DYNSYM, data: b.Bytes(), link: 5},
			testSection{name: ".long", kind: elf.SHT_STRTAB, data: asm("", strings.Repeat("_ZN", 1<<19))})
	}, ""},
	{"10,000 sections of one code", func() []byte {
		text := elf.SHF_ALLOC | elf.SHF_EXECINSTR
		list := []testSection{{name: ".code", kind: elf.SHT_PROGBITS, flags: text, addr: 1 << 32, data: bytes.Repeat([]byte{0xff, 0xd0}, 1<<18)}}
		for i := range 10_000 {
			list = append(list, testSection{kind: elf.SHT_PROGBITS, flags: text, addr: 2<<32 + uint64(i)<<20, same: true, name2: 1})
		}
		return makeELF(list...)
	}, ""},
	{"a name that stands for 2^28 types", func() []byte {
		var b bytes.Buffer
		binary.Write(&b, binary.LittleEndian, elf.Sym64{})
		binary.Write(&b, binary.LittleEndian, elf.Sym64{Name: 1, Info: byte(elf.STT_FUNC), Shndx: 1, Value: codeAddr, Size: codeSize})
		f := makeELF(testSection{name: ".dynsym", kind: elf.SHT_DYNSYM, data: b.Bytes(), link: 5},
			testSection{name: ".dynstr", kind: elf.SHT_STRTAB, data: asm("", doubling(28))})
		// The other table goes, so that this one is read.
		return bytes.Replace(f, asm(uint32(elf.SHT_SYMTAB), uint64(0)), asm(uint32(elf.SHT_NOTE), uint64(0)), 1)
	}, ""},
}

// Each hostile file stays within its budget, and at least its symbol is found.
func TestHostileFilesStayInBudget(t *testing.T) {
	cmdtest.Long(t)
	dir := t.TempDir()
	for i, h := range hostile {
		if raceFactor > 1 && testing.Short() && i >= 3 {
			break // all of them take many minutes there, and have no goroutines
		}
		data := h.build()
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		size := len(data)
		data = nil
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := cmdtest.ProcessorTime()
		known, lines, says := useAll(t, path)
		took := cmdtest.ProcessorTime() - start
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d KB: %d of 256 addresses named, %d with lines; %d MB allocated, %v: %s", h.name, size>>10, known, lines, allocated>>20, took, says)
		// The total of allocations exceeds the memory in use, because slices grow.
		if limit := uint64(2 * (dwarf.FloorBytes + dwarf.BytesPerByte*size)); allocated > limit {
			t.Errorf("%s: %d bytes allocated, expected at most %d", h.name, allocated, limit)
		}
		if limit := raceFactor * (time.Minute + time.Duration(size)*time.Microsecond); took > limit {
			t.Errorf("%s: took %v, expected at most %v", h.name, took, limit)
		}
		if h.says != "" != (says != "") && h.says != "" || !strings.Contains(says, h.says) {
			t.Errorf("%s: says %q, want %q", h.name, says, h.says)
		}
		if i == 0 && lines < 200 {
			t.Errorf("%s, but only %d addresses have lines", h.name, lines)
		}
		if known < 128 && !strings.Contains(says, "malformed ELF") {
			t.Errorf("%s: only %d addresses are named, want at least those of the symbol", h.name, known)
		}
	}
}

// useAll does all that can be done with a file, and returns how many of 256
// addresses in its code have a function and a line, and what the file says.
func useAll(t testing.TB, path string) (known, lines int, says string) {
	r, err := NewProcess(Config{Files: []FileSpec{{Path: path}}})
	if err != nil {
		return 0, 0, err.Error()
	}
	defer r.Close()
	r.SetBases(InferBases(r.Unplaced(), nil))
	f := r.Files()[0]
	f.calls()
	for i := range uint64(256) {
		l := r.at(codeAddr + 1 + i*(codeSize/256))
		if len(l.Frames) > 1000 {
			t.Fatalf("%s: %d frames for an address", path, len(l.Frames))
		}
		if len(l.Frames) > 0 && l.Frames[0].Func != "" {
			known++
			if l.Frames[0].Line > 0 {
				lines++
			}
		}
		if lines == 0 && l.Missing == "" && len(l.Frames) == 0 {
			t.Errorf("%s: nothing at %#x, and no reason", path, codeAddr+1+i*(codeSize/256))
		}
	}
	f.Functions()
	return known, lines, strings.Join(append(allNotes(r), f.Why()), "\n")
}

// A mangled name with very many types is demangled to a name of limited length.
func TestDemangledNamesAreBounded(t *testing.T) {
	name := doubling(28)
	if len(name) > 255 {
		t.Fatalf("%d characters, expected at most 255", len(name))
	}
	// As c++filt has it.
	if got := demangled(doubling(2)); got != "void f<b<b<a, a>, b<a, a> > >()" {
		t.Fatalf("%s: %s is not what this test is about", doubling(2), got)
	}
	if got := demangled(name); len(got) > 1<<maxDemangled {
		t.Errorf("%d characters, expected at most %d", len(got), 1<<maxDemangled)
	}
}

// Many segments of the same notes are searched for a build-id once.
func TestSharedNotes(t *testing.T) {
	le := binary.LittleEndian
	note := append(le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 4), 0), 9), "abc\x00"...)
	notes := bytes.Repeat(note, 400000)
	const progs = 60000
	var image bytes.Buffer
	binary.Write(&image, le, elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_EXEC),
		Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: progs})
	for range progs {
		binary.Write(&image, le, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: 64 + 56*progs, Filesz: uint64(len(notes)), Align: 4})
	}
	image.Write(notes)
	path := filepath.Join(t.TempDir(), "notes")
	if err := os.WriteFile(path, image.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		f, err := Open(path, nil)
		if err == nil {
			f.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("a file of %d bytes takes over 2 minutes", image.Len())
	}
}
