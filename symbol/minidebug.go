package symbol

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"slices"

	"github.com/therootcompany/xz"
)

// maxDictionary is the most memory for the dictionary of xz. Fedora and RHEL write 8 MB.
const maxDictionary = 16 << 20

// addMini adds the functions of section .gnu_debugdata to the dynamic ones. It holds an ELF file,
// compressed by xz, whose symbol table has the functions that are not dynamic: the MiniDebugInfo of
// Fedora and RHEL.
func (f *File) addMini(t *symbolTable) {
	g, err := f.mini()
	if t.mini = err; g == nil {
		return
	}
	mini := &symbolTable{budget: t.budget}
	g.readTable(mini, elf.SHT_SYMTAB)
	if len(mini.functions) == 0 || !f.budget.Alloc(int64(len(t.strings)+len(mini.strings))) {
		return
	}
	shift := uint32(len(t.strings))
	t.strings = slices.Concat(t.strings, mini.strings)
	for _, fn := range mini.functions {
		fn.name += shift
		fn.file += shift
		t.functions = append(t.functions, fn)
	}
	t.dynamic = false
}

// mini returns the file in .gnu_debugdata, nil if there is none that fits f.
func (f *File) mini() (*File, error) {
	data, err := f.section(".gnu_debugdata")
	if err != nil || len(data) == 0 {
		return nil, err
	}
	left := f.budget.Left()
	r, err := xz.NewReader(bytes.NewReader(data), uint32(min(left, maxDictionary)))
	if err != nil {
		return nil, err
	}
	image, err := io.ReadAll(io.LimitReader(r, left+1))
	if err == nil && !f.budget.Alloc(int64(len(image))) {
		err = errors.New("it is too large")
	}
	if err != nil {
		return nil, err
	}
	g := &File{Path: f.Path, image: image, budget: f.budget}
	if err := g.readHeaders(); err != nil {
		return nil, err
	}
	if g.Machine != f.Machine || g.Word != f.Word || g.BuildID != f.BuildID && g.BuildID != "" {
		return nil, errors.New("it is of another file")
	}
	return g, nil
}
