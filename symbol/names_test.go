package symbol

import (
	"os"
	"path/filepath"
	"testing"
)

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
