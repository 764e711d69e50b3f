package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/symbol"
)

// symbols names addresses of the image. Its names are safe to print.
type symbols struct {
	*symbol.Process
	in    *input
	addrs []symbol.Addr
}

// symbols returns the names of the image's addresses.
func (in *input) symbols() (*symbols, error) {
	c := symbol.Config{DebugDirs: symbol.DebugDirs(), Machine: in.Machine, Word: in.Word, WordBy: "the image"}
	if in.sysroot != "" {
		c.Sysroots = []string{in.sysroot}
	}
	for _, f := range in.files {
		if !f.own {
			continue // the module names it
		}
		spec := symbol.FileSpec{Path: f.path}
		if f.placed {
			spec.Load, spec.Addr = symbol.LoadBias, f.bias
		}
		c.Files = append(c.Files, spec)
	}
	p, err := symbol.NewProcess(c)
	if err != nil {
		return nil, err
	}
	var maps []symbol.Mapping
	for _, m := range in.Modules() {
		mod := &symbol.Module{Name: m.Path, BuildID: m.BuildID, Logged: true}
		for _, r := range m.Maps {
			maps = append(maps, symbol.Mapping{Start: r.Start, End: r.End, Exec: r.Exec, Module: mod, Offset: r.Offset})
		}
	}
	p.Map(maps)
	return &symbols{Process: p, in: in}, nil
}

// print prints the call stack of a blob, one line per function.
func (s *symbols) print(w io.Writer, blob []byte, word int) {
	var st codec.Stack
	if err := (codec.Decoder{Word: word}).Decode(&st, nil, blob); err != nil {
		fmt.Fprintf(w, "    its call stack cannot be read: %v\n", err)
		return
	}
	if len(st.PCs) == 0 {
		fmt.Fprintln(w, "    without a call stack")
		return
	}
	s.addrs = s.Resolve(s.addrs[:0], &st, blob)
	digits := 8
	if word == 64 {
		digits = 12
	}
	for _, a := range s.addrs {
		pc := fmt.Sprintf("0x%0*x", digits, a.PC)
		if a.State == symbol.Lost {
			pc += "?"
		}
		if len(a.Frames()) == 0 {
			io.WriteString(w, frame("    "+pc+"  ", "??", reason(a)))
			continue
		}
		for j, x := range a.Frames() {
			if j > 0 {
				pc = fmt.Sprintf("%*s", digits+2, "inlined")
			}
			name, place := x.Name, ""
			if name == "" {
				name = "??"
			}
			if x.File != "" {
				place = fmt.Sprintf("%s:%d", s.in.place(x.File), x.Line)
			}
			io.WriteString(w, frame(fmt.Sprintf("    %s  ", pc), name, place))
		}
	}
}

// frameFlags adds the flags of commands that print call stacks.
func (in *input) frameFlags(f *pflag.FlagSet) {
	f.BoolVarP(&in.basenames, "basenames", "s", false, "strip directories from file names")
}

// place returns the name of a file as the flags want it.
func (in *input) place(file string) string {
	if in.basenames {
		file = file[strings.LastIndexByte(file, '/')+1:]
	}
	return cli.Printable(file)
}

// frame returns the line of a function in a call stack: what is in front of its name, the name, and its place, on a line of its own if
// it is too long otherwise.
func frame(before, name, place string) string {
	text := before + name
	switch {
	case place == "":
	case utf8.RuneCountInString(text+"  "+place) > cli.DefaultWidth:
		text += "\n      " + place
	default:
		text += "  " + place
	}
	return text + "\n"
}

// reason describes why an address has no name.
func reason(a symbol.Addr) string {
	var parts []string
	if l := a.Location; l != nil && l.Module != nil {
		parts = append(parts, fmt.Sprintf("in %s+%#x", l.Module.Name, l.Own))
	}
	if why := a.Missing(); why != "" {
		parts = append(parts, why)
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, ": ") + ")"
}

// followsCall returns a function that reports whether the file of an address is known, and whether
// the address follows a call; nil if no file can tell.
func (in *input) followsCall() func(pc uint64) (known, follows bool) {
	var list []*elfFile
	for f := range in.loaded {
		if file := f.open(); file != nil && file.CanTellCalls() {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return func(pc uint64) (known, follows bool) {
		for _, f := range list {
			addr := in.fit(pc - f.bias)
			if f.program.Executable(addr) || f.program.Executable(addr-1) {
				return true, f.program.FollowsCall(addr)
			}
		}
		return false, false
	}
}
