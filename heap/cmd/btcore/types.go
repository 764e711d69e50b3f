package main

import (
	"debug/elf"
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/types"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// typedFile is a file of the program with its debug information.
type typedFile struct {
	*elfFile
	info *types.Info
}

// types returns the names of the structs that blocks probably are, "" if not known. Blocks need their call
// stack and requested size: allocators of others store only one of them.
func (in *input) types(h *core.Heap) []string {
	if h.Foreign {
		return nil
	}
	var files []typedFile
	for f := range in.loaded {
		if !f.own { // libraries: their names are seldom those of the program's data
			continue
		}
		info, err := types.Read(f.path)
		if err != nil {
			in.note("no types: %v", err)
			continue
		}
		files = append(files, typedFile{f, info})
	}
	structs := map[string]*types.Struct{} // by blob
	names := make([]string, len(h.Blocks))
	for i := range h.Blocks {
		b := &h.Blocks[i]
		if b.Blob == nil || b.Damaged {
			continue
		}
		s, seen := structs[string(b.Blob)]
		if !seen {
			s = in.structOf(files, b.Blob)
			structs[string(b.Blob)] = s
		}
		if s == nil {
			continue
		}
		pointer := func(off uint64) (uint64, bool) { return in.Pointer(b.Addr + off) }
		if s.Fits(pointer, func(addr uint64) bool { return in.Find(addr) != nil || in.MapAt(addr) != nil }) {
			names[i] = s.Name
		}
	}
	return names
}

// structOf returns the struct of a block, by its blob.
func (in *input) structOf(files []typedFile, blob []byte) *types.Struct {
	var st codec.Stack
	if codec.DecodeWord(&st, blob, in.Word) != nil {
		return nil
	}
	for _, f := range files {
		pcs := make([]uint64, len(st.PCs))
		for i, pc := range st.PCs {
			if in.Machine == elf.EM_ARM { // bit 0 is that of Thumb
				pc &^= 1
			}
			pcs[i] = in.fit(pc - f.bias)
		}
		if s := f.info.Struct(st.Size, pcs); s != nil {
			return s
		}
	}
	return nil
}

// typed describes how many blocks have a type.
func typed(h *core.Heap, names []string) string {
	n, bytes := 0, uint64(0)
	for i, name := range names {
		if name != "" {
			n++
			bytes += h.Blocks[i].Size
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("types of %s in %s, by the variables of the functions that allocated them", cli.Count(bytes, "byte"), cli.Count(n, "block"))
}
