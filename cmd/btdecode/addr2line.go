package main

import (
	"bufio"
	"fmt"

	"github.com/lwsbt/lwsbt/heaplog"
	"github.com/lwsbt/lwsbt/symbol"
)

// addr2lineSink writes the output of GNU addr2line for the addresses of the records.
type addr2lineSink struct {
	w *bufio.Writer
	*options
}

func (a *addr2lineSink) record(it *heaplog.Item) error {
	for _, alloc := range it.Allocs {
		for _, p := range alloc.Stack {
			a.addr(p)
		}
	}
	for _, e := range it.Events {
		for _, p := range e.Stack {
			a.addr(p)
		}
	}
	_, err := a.w.Write(nil)
	return err
}

func (a *addr2lineSink) addr(p symbol.Addr) {
	if a.addresses {
		width := 16
		if m := moduleOf(p); m != nil && m.File != nil && m.File.Word == 32 {
			width = 8
		}
		fmt.Fprintf(a.w, "0x%0*x", width, p.PC)
		if a.pretty {
			a.w.WriteString(": ")
		} else {
			a.w.WriteByte('\n')
		}
	}
	if len(p.Frames()) == 0 {
		if a.functions {
			a.w.WriteString("??")
			a.w.WriteString(a.afterName(" "))
		}
		a.w.WriteString("??:0\n")
		return
	}
	for i, f := range p.Frames() {
		if a.functions {
			name := f.Func
			if a.demangle {
				name = f.Name
			}
			a.w.WriteString(orUnknown(name))
			a.w.WriteString(a.afterName(" at "))
		}
		a.w.WriteString(orUnknown(a.file(f.File)))
		switch {
		case f.Line == 0:
			a.w.WriteString(":?\n")
		case f.Discriminator != 0:
			fmt.Fprintf(a.w, ":%d (discriminator %d)\n", f.Line, f.Discriminator)
		default:
			fmt.Fprintf(a.w, ":%d\n", f.Line)
		}
		if !a.inlines || i == len(p.Frames())-1 {
			return
		}
		if a.pretty {
			a.w.WriteString(" (inlined by) ")
		}
	}
}

// afterName returns the text between a function and its place.
func (a *addr2lineSink) afterName(pretty string) string {
	if a.pretty {
		return pretty
	}
	return "\n"
}

func (a *addr2lineSink) unreadable(*heaplog.Item) error { return nil }
func (a *addr2lineSink) text([]byte) error              { return nil }
func (a *addr2lineSink) close() error                   { return nil }
