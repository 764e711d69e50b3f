package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/types"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/symbol"
)

// blockTypes are the types of the blocks of a heap.
type blockTypes struct {
	names   *types.Names
	objects int // named by their first word
	reached int // named by pointers
}

// types returns the types that blocks probably have: by their first word, else by typed pointers.
func (in *input) types(h *core.Heap) blockTypes {
	var files []*elfFile
	var infos []*types.Info
	for f := range in.loaded {
		if !f.own { // libraries: their names are seldom those of the program's data
			continue
		}
		info, err := types.Read(f.path)
		if err != nil {
			in.note("no types: %v", err)
			continue
		}
		files, infos = append(files, f), append(infos, info)
	}
	blocks := types.Blocks{Len: len(h.Blocks), At: func(i int) types.Block {
		b := &h.Blocks[i]
		in.Passed(min(b.Size, 4096))
		if h.Unknown(i) || b.Damaged {
			return types.Block{Addr: b.Addr}
		}
		return types.Block{Addr: b.Addr, Size: b.Size}
	}, Find: func(addr uint64) (int, bool) { return in.BlockAt(h, addr) }}
	t := blockTypes{names: types.Objects(blocks, in.tables(), uint64(in.PointerSize()), in.Pointer, infos...)}
	for i := range h.Blocks {
		if t.names.At(i) != "" {
			t.objects++
		}
	}
	for k, f := range files {
		place := func(addr uint64) uint64 { return in.fit(addr + f.bias) }
		err := infos[k].Reached(blocks, types.Memory{Pointer: in.Pointer, Has: in.inMemory, Place: place, Exact: !h.Foreign}, func(i int, name string) {
			if t.names.At(i) == "" { // else not sure
				t.names.Set(i, name)
				t.reached++
			}
		})
		if err != nil {
			in.note("no types: %v", err)
		}
	}
	return t
}

// inMemory reports whether an address is one of the program.
func (in *input) inMemory(addr uint64) bool { return in.Find(addr) != nil || in.MapAt(addr) != nil }

// tables returns the vtables of the program and its libraries, and their constant data with pointers to functions.
func (in *input) tables() (list []types.Table) {
	var names symbol.Demangler
	data := in.roots().Data
	constant := func(addr uint64) bool {
		if m := in.MapAt(addr); m != nil {
			return !m.Write
		}
		return in.Find(addr) != nil && !slices.ContainsFunc(data, func(m core.Map) bool { return addr >= m.Start && addr < m.End })
	}
	for f := range in.loaded {
		all, _ := in.Variables(f.path, f.bias) // a file may have no symbols
		for _, s := range all {
			if t := (types.Table{Name: s.Name, Addr: s.Addr, Size: s.Size}); strings.HasPrefix(s.Name, "_ZTV") {
				if t.Name, t.Class = strings.CutPrefix(names.Demangle(s.Name), "vtable for "); t.Class {
					list = append(list, t)
				}
			} else if constant(s.Addr) && in.hasFunction(s) {
				list = append(list, t)
			}
		}
	}
	return list
}

// maxTable limits the number of bytes of a constant that are searched for pointers to functions.
const maxTable = 1 << 10

// hasFunction reports whether data has a pointer to code.
func (in *input) hasFunction(s core.Symbol) bool {
	word := uint64(in.PointerSize())
	if s.Addr%word != 0 {
		return false
	}
	for off := uint64(0); off+word <= min(s.Size, maxTable); off += word {
		v, _ := in.Pointer(s.Addr + off)
		for f := range in.loaded {
			if file := f.open(); v != 0 && file != nil && file.Executable(in.fit(v-f.bias)) {
				return true
			}
		}
	}
	return false
}

// describe returns how many blocks have a type, and by what; "" if none has.
func (t *blockTypes) describe(h *core.Heap) string {
	n, bytes := 0, uint64(0)
	for i := range h.Blocks {
		if t.names.At(i) != "" {
			n++
			bytes += h.Blocks[i].Size
		}
	}
	if n == 0 {
		return ""
	}
	var by []string
	if t.objects > 0 {
		by = append(by, cli.Number(t.objects)+" by their first word")
	}
	if t.reached > 0 {
		by = append(by, cli.Number(t.reached)+" by pointers of variables and structs")
	}
	return fmt.Sprintf("types of %s in %s: %s", cli.Count(bytes, "byte"), cli.Count(n, "block"), strings.Join(by, ", "))
}
