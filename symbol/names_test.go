package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// symbolsELF writes a file whose symbol table has a symbol for each name, by its offset
// in strings, over equal parts of the code.
func symbolsELF(t *testing.T, strings []byte, names ...uint32) string {
	t.Helper()
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, elf.Sym64{})
	size := uint64(codeSize / len(names))
	for i, n := range names {
		binary.Write(&b, binary.LittleEndian, elf.Sym64{Name: n, Info: byte(elf.STT_FUNC), Shndx: 1, Value: codeAddr + uint64(i)*size, Size: size})
	}
	f := makeELF(testSection{name: ".dynsym", kind: elf.SHT_DYNSYM, data: b.Bytes(), link: 5},
		testSection{name: ".dynstr", kind: elf.SHT_STRTAB, data: strings})
	// The other table goes, so that this one is read.
	f = bytes.Replace(f, bytes.Repeat([]byte{0xff, 0xd0}, codeSize/2), make([]byte, codeSize), 1) // no address follows a call
	f = bytes.Replace(f, asm(uint32(elf.SHT_SYMTAB), uint64(0)), asm(uint32(elf.SHT_NOTE), uint64(0)), 1)
	path := filepath.Join(t.TempDir(), "symbols")
	if err := os.WriteFile(path, f, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// locateAll looks up every address of the code of a file. It returns the number of addresses
// with a name, the bytes allocated, and the notes.
func locateAll(t *testing.T, path string) (named int, allocated uint64, notes string) {
	t.Helper()
	r := configured(t, Config{Files: []FileSpec{{Path: path}}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range uint64(codeSize) {
		if l := r.at(codeAddr + i); len(l.Frames) > 0 && l.Frames[0].Func != "" {
			named++
		}
	}
	runtime.ReadMemStats(&after)
	return named, after.TotalAlloc - before.TotalAlloc, strings.Join(allNotes(r), "\n")
}

// All addresses of a function share its name, however long and odd that is.
func TestLongNameOfManyAddresses(t *testing.T) {
	for _, letter := range []byte{'n', '\n'} {
		path := symbolsELF(t, append(append([]byte{0}, bytes.Repeat([]byte{letter}, maxName)...), 0), 1)
		named, allocated, _ := locateAll(t, path)
		if named < codeSize/2 {
			t.Errorf("%d of %d addresses have a name", named, codeSize)
		}
		if allocated > 8<<20 {
			t.Errorf("%q: %d bytes allocated for %d addresses with one name of %d", letter, allocated, codeSize, maxName)
		}
	}
}

// Names that share their bytes take no more memory than those of a file of that size
// should; what has no name for that reason says so.
func TestLongNamesThatShareBytes(t *testing.T) {
	names := make([]uint32, codeSize)
	for i := range names {
		names[i] = uint32(1 + i)
	}
	strs := append(append([]byte{0}, bytes.Repeat([]byte{'n'}, maxName+codeSize)...), 0)
	named, allocated, notes := locateAll(t, symbolsELF(t, strs, names...))
	if named < 1000 || named == codeSize || !strings.Contains(notes, "the names of its symbols take more memory") {
		t.Errorf("%d of %d addresses have names; notes: %s", named, codeSize, notes)
	}
	if allocated > 120<<20 {
		t.Errorf("%d bytes allocated", allocated)
	}
}

// expansions is a mangled name of n bytes and more with expansions of a parameter pack.
func expansions(n int) string {
	return "_Z1fIJ" + strings.Repeat("i", n/2) + "EEv" + strings.Repeat("DpT_", n/8)
}

// A name that takes a minute to demangle is left as it is, and so are many that take
// long; others are not.
func TestDemangleTime(t *testing.T) {
	cmdtest.Long(t)
	start := cmdtest.ProcessorTime()
	var d Demangler
	if got := d.Demangle(expansions(24)); got != "void f<"+strings.Repeat("int, ", 11)+"int>("+strings.Repeat("int, ", 35)+"int)" {
		t.Errorf("a short name: %s", got) // as c++filt has it
	}
	if d.Why() != "" {
		t.Errorf("after a short name: %s", d.Why())
	}
	for _, n := range []int{2000, 4000, 30000} {
		if name := expansions(n); demangled(name) != name || d.Demangle(name) != name {
			t.Errorf("expansions(%d): demangled", n)
		}
	}
	if d.Why() == "" {
		t.Error("no reason for names that are left as they are")
	}
	left := 0
	for i := range 100 {
		if name := expansions(400 + i); d.Demangle(name) == name {
			left++
		}
	}
	if left < 50 {
		t.Errorf("%d of 100 names left as they are: the time for all of them has no bound", left)
	}
	if took := cmdtest.ProcessorTime() - start; took > raceFactor*20*time.Second {
		t.Errorf("took %v", took)
	}
}

// A definition that refers to a declaration has the linkage name of either, or else its own
// name, or else that of the declaration. (LLVM's DWARFDie::getSubroutineName)
func TestNameOfDefinition(t *testing.T) {
	abbrev := asm(abbrevUnit, 2, 0x2e, 0, 0x6e, 0x08, 0x03, 0x08, 0, 0, // linkage_name, name
		3, 0x2e, 0, 0x47, 0x13, 0x6e, 0x08, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, // specification, the same, low_pc, high_pc
		4, 0x2e, 0, 0x03, 0x08, 0, 0, // name
		5, 0x2e, 0, 0x47, 0x13, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, // specification, name, low_pc, high_pc
		6, 0x2e, 0, 0x47, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0, // specification, low_pc, high_pc
		0)
	const header = 4 + 2 + 4 + 1
	at := uint32(header + len(unitRoot)) // of the declaration
	code := asm(uint64(codeAddr), uint64(codeSize))
	for name, c := range map[string]struct {
		entries []byte
		want    string
	}{
		"linkage names of both":           {asm(2, "linkage1", "name1", 3, at, "linkage2", "name2", code), "linkage2"},
		"linkage name of the declaration": {asm(2, "linkage1", "name1", 5, at, "name2", code), "linkage1"},
		"names of both":                   {asm(4, "name1", 5, at, "name2", code), "name2"},
		"name of the declaration":         {asm(4, "name1", 6, at, code), "name1"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "prog")
			data := makeELF(debugSection(".debug_abbrev", abbrev), debugSection(".debug_info", unit4(0, unitRoot, c.entries, 0)),
				debugSection(".debug_line", lines4(setCodeAddr, 0x20, endSequence)))
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			f, err := Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			frames, err := f.Lookup(nil, codeAddr)
			if err != nil || len(frames) != 1 || frames[0].Func != c.want {
				t.Errorf("%+v, %v, want %s", frames, err, c.want)
			}
		})
	}
}
