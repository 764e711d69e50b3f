package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/symbol"
)

// symbols names addresses of the image. Its names are safe to print.
type symbols struct {
	symbol.Process
	frames []symbol.FrameAddr
}

// symbols returns the names of the image's addresses.
func (in *input) symbols() (*symbols, error) {
	s := &symbols{}
	r := &s.Files
	r.DebugDirs, r.Machine = symbol.DebugDirs(), in.Machine
	r.SetWord(in.Word, "the image")
	if in.sysroot != "" {
		r.Sysroots = []string{in.sysroot}
	}
	for _, f := range in.files {
		if !f.own {
			continue // the module names it
		}
		spec := symbol.FileSpec{Path: f.path}
		if f.loaded {
			spec.Load, spec.Addr = symbol.LoadBias, f.bias
		}
		if err := r.AddFile(spec); err != nil {
			return nil, err
		}
	}
	var maps []symbol.Mapping
	for _, m := range in.Modules() {
		mod := &symbol.Module{Name: m.Path, BuildID: m.BuildID, Logged: true}
		for _, p := range m.Maps {
			maps = append(maps, symbol.Mapping{Start: p.Start, End: p.End, Exec: p.Exec, Module: mod, Offset: p.Offset})
		}
	}
	if len(maps) > 0 {
		s.Maps.Set(maps)
	}
	return s, nil
}

// print prints the call stack of a blob, one line per function.
func (s *symbols) print(w io.Writer, blob []byte, word int) {
	var st codec.Stack
	if err := codec.DecodeWord(&st, blob, word); err != nil {
		fmt.Fprintf(w, "    its call stack cannot be read: %v\n", err)
		return
	}
	if len(st.PCs) == 0 {
		fmt.Fprintln(w, "    without a call stack")
		return
	}
	s.frames, _ = s.Resolve(s.frames[:0], &st, blob)
	digits := 8
	if word == 64 {
		digits = 12
	}
	for i, f := range s.frames {
		pc := fmt.Sprintf("0x%0*x", digits, st.PCs[i])
		if f.State == symbol.Lost {
			pc += "?"
		}
		if len(f.Frames) == 0 {
			fmt.Fprintf(w, "    %s  ?? %s\n", pc, reason(f))
			continue
		}
		for j, x := range f.Frames {
			if j > 0 {
				pc = fmt.Sprintf("%*s", digits+2, "inlined")
			}
			name, place := x.Name, ""
			if name == "" {
				name = "??"
			}
			if x.File != "" {
				place = fmt.Sprintf("  %s:%d", x.File, x.Line)
			}
			fmt.Fprintf(w, "    %s  %s%s\n", pc, name, place)
		}
	}
}

// reason describes why an address has no name.
func reason(f symbol.FrameAddr) string {
	var parts []string
	if f.Module != "" {
		parts = append(parts, fmt.Sprintf("in %s+%#x", f.Module, f.ObjAddr))
	}
	if f.Reason != "" {
		parts = append(parts, f.Reason)
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, ": ") + ")"
}

// followsCall returns two functions. follows reports whether the file that an address
// is in is known, and whether the address follows a call. close closes the files.
func (in *input) followsCall() (follows func(pc uint64) (known, follows bool), close func()) {
	type object struct {
		file *symbol.File
		bias uint64
	}
	var list []object
	for _, f := range in.files {
		if !f.loaded {
			continue
		}
		file, err := symbol.Open(f.path, nil)
		if err != nil {
			continue // the error is reported where names are needed
		}
		if file.CanTellCalls() {
			list = append(list, object{file, f.bias})
		} else {
			file.Close()
		}
	}
	close = func() {
		for _, o := range list {
			o.file.Close()
		}
	}
	if len(list) == 0 {
		return nil, close
	}
	return func(pc uint64) (known, follows bool) {
		for _, o := range list {
			addr := pc - o.bias
			if in.Word == 32 {
				addr = uint64(uint32(addr))
			}
			if o.file.Text(addr) || o.file.Text(addr-1) {
				return true, o.file.FollowsCall(addr)
			}
		}
		return false, false
	}, close
}
