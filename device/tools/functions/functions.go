// Package functions makes the table of function starts that the capture backends
// of device/ look functions up in, from the symbols of an ELF file.
package functions

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// A Table is the content of a struct lwsbt_functions.
type Table struct {
	Base, End uint64   // addresses: of the first function, and past the last
	Start     []uint32 // of each function, less Base, ascending
}

// The two objects that device/src/capture_functions.c defines.
const (
	symbolTable  = "lwsbt_functions"
	symbolStarts = "lwsbt_function_starts"
)

// Read returns the table of all functions that the symbols of f name.
func Read(f *elf.File) (*Table, error) {
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("%w: the table is made from symbols: run functable before strip", err)
	}
	var starts []uint64
	t := &Table{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF || int(s.Section) >= len(f.Sections) {
			continue
		}
		if f.Sections[s.Section].Flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		at := s.Value
		if f.Machine == elf.EM_ARM || f.Machine == elf.EM_MIPS {
			at &^= 1 // the mode: Thumb, MIPS16, microMIPS
		}
		starts = append(starts, at)
		t.End = max(t.End, at+max(s.Size, 1))
	}
	if len(starts) == 0 {
		return nil, errors.New("no symbol of a function")
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	t.Base = starts[0]
	if t.End-t.Base > 1<<32-1 {
		return nil, fmt.Errorf("functions from 0x%x to 0x%x: more than 4 GiB apart", t.Base, t.End)
	}
	for _, at := range starts {
		t.Start = append(t.Start, uint32(at-t.Base))
	}
	return t, nil
}

// WriteC writes the table as a C source file, to be linked instead of
// capture_functions.c.
func (t *Table) WriteC(w io.Writer) error {
	var b []byte
	b = fmt.Appendf(b, "/* Made by btcore functable. Function starts, less 0x%x. */\n#include \"lwsbt.h\"\n\n", t.Base)
	b = fmt.Appendf(b, "const uint32_t %s[%d] = {", symbolStarts, len(t.Start))
	for i, s := range t.Start {
		if i%10 == 0 {
			b = append(b, "\n\t"...)
		} else {
			b = append(b, ' ')
		}
		b = fmt.Appendf(b, "0x%x,", s)
	}
	b = fmt.Appendf(b, "\n};\n\nconst struct %s %s = {\n\t%s, %d, (uintptr_t)0x%x, (uintptr_t)0x%x\n};\n",
		symbolTable, symbolTable, symbolStarts, len(t.Start), t.Base, t.End)
	b = fmt.Appendf(b, "\nconst struct %s *lwsbt_function_table(void)\n{\n\treturn &%s;\n}\n", symbolTable, symbolTable)
	_, err := w.Write(b)
	return err
}

// Patch writes the table into the ELF file at path, which was linked with
// capture_functions.c and so has room for it.
func Patch(path string) (*Table, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f, err := elf.NewFile(file)
	if err != nil {
		return nil, err
	}
	t, err := Read(f)
	if err != nil {
		return nil, err
	}
	table, err := find(f, symbolTable)
	if err != nil {
		return nil, err
	}
	starts, err := find(f, symbolStarts)
	if err != nil {
		return nil, err
	}
	if room := starts.Size / 4; uint64(len(t.Start)) > room {
		return nil, fmt.Errorf("%d functions, but %s has room for %d: compile with -DLWSBT_FUNCTIONS_MAX=%d",
			len(t.Start), symbolStarts, room, len(t.Start))
	}
	var order binary.AppendByteOrder = binary.LittleEndian
	if f.Data == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	var image []byte
	for _, s := range t.Start {
		image = order.AppendUint32(image, s)
	}
	if err := write(file, f, starts, 0, image); err != nil {
		return nil, err
	}
	var words []byte
	for _, w := range []uint64{uint64(len(t.Start)), t.Base, t.End} {
		if f.Class == elf.ELFCLASS64 {
			words = order.AppendUint64(words, w)
		} else {
			words = order.AppendUint32(words, uint32(w))
		}
	}
	// Behind the pointer to the starts, which the linker has set.
	if err := write(file, f, table, uint64(len(words)/3), words); err != nil {
		return nil, err
	}
	return t, file.Close()
}

func find(f *elf.File, name string) (elf.Symbol, error) {
	symbols, err := f.Symbols()
	if err != nil {
		return elf.Symbol{}, err
	}
	for _, s := range symbols {
		if s.Name == name && s.Section != elf.SHN_UNDEF {
			return s, nil
		}
	}
	return elf.Symbol{}, fmt.Errorf("no symbol %s: compile with -DLWSBT_FUNCTIONS_MAX=N, and call lwsbt_wrap_begin or lwsbt_function_table", name)
}

// write replaces the bytes from off on of the object that s names.
func write(file *os.File, f *elf.File, s elf.Symbol, off uint64, b []byte) error {
	if int(s.Section) >= len(f.Sections) {
		return fmt.Errorf("symbol %s: section %d: there are %d", s.Name, s.Section, len(f.Sections))
	}
	section := f.Sections[s.Section]
	at := s.Value + off
	if section.Type == elf.SHT_NOBITS {
		return fmt.Errorf("symbol %s: section %s is not in the file", s.Name, section.Name)
	}
	if at < section.Addr || at+uint64(len(b)) > section.Addr+section.Size {
		return fmt.Errorf("symbol %s: 0x%x is outside section %s", s.Name, at, section.Name)
	}
	_, err := file.WriteAt(b, int64(section.Offset+at-section.Addr))
	return err
}
