package main

import (
	"slices"

	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// frames caches, for each address, its text in the output and the filter's decision.
type frames struct {
	filter  *profile.Filter
	render  func(a symbol.Addr, shown []symbol.Frame) string
	cache   map[symbol.Addr]*rendered
	matched profile.Matched // by all records

	named  bool                        // the command line names files with symbols
	locate func(pc uint64) symbol.Addr // has a Location if the log has a memory map
}

// rendered is an address in the output.
type rendered struct {
	text    string // "" if all of it is hidden
	matched profile.Matched
}

// maxRendered is the largest number of cached addresses.
const maxRendered = 1 << 16

func newFrames(o *options, r *heaplog.Reader) *frames {
	return &frames{filter: &o.Filter, cache: map[symbol.Addr]*rendered{}, named: o.Named(), locate: r.Locate}
}

// of returns an address in the output.
func (f *frames) of(a symbol.Addr) *rendered {
	if c := f.cache[a]; c != nil {
		return c
	}
	if len(f.cache) >= maxRendered {
		clear(f.cache)
	}
	c := &rendered{}
	shown := a.Frames()
	hidden := false
	if f.filter.Any() {
		list, matched := f.filter.Frames(nil, a)
		c.matched = matched
		if hidden = len(list) == 0; len(shown) > 0 { // else the only frame is the address
			shown = list
		}
	}
	if !hidden && f.render != nil {
		c.text = f.render(a, shown)
	}
	f.cache[a] = c
	return c
}

// keeps reports whether the filter keeps an item. From an item with several call paths, it
// removes the paths that the filter leaves out.
func (f *frames) keeps(it *heaplog.Item) bool {
	switch {
	case f.filter.Ignore == nil && f.filter.Focus == nil:
		return true
	case it.Kind == recording.KindPaths:
		it.Allocs = slices.DeleteFunc(it.Allocs, func(a heaplog.Alloc) bool { return !f.keepsStack(a.Stack) })
		return len(it.Allocs) > 0
	case it.Kind == recording.KindPathEvents:
		it.Events = slices.DeleteFunc(it.Events, func(e heaplog.PathEvent) bool { return !f.keepsStack(e.Stack) })
		return len(it.Events) > 0
	}
	return len(it.Allocs) > 0 && f.keepsStack(it.Allocs[0].Stack)
}

// keepsStack reports whether the filter keeps a stack.
func (f *frames) keepsStack(stack []symbol.Addr) bool {
	focused := f.filter.Focus == nil
	for _, a := range stack {
		m := f.of(a).matched
		if m.Ignore {
			f.matched.Ignore = true
			return false
		}
		focused = focused || m.Focus
	}
	f.matched.Focus = f.matched.Focus || focused
	return focused
}

// text returns an address in the output, "" if all its frames are hidden.
func (f *frames) text(a symbol.Addr) string {
	c := f.of(a)
	if f.filter.Any() {
		f.matched = f.matched.Or(profile.Matched{Hide: c.matched.Hide})
	}
	return c.text
}

// looked reports whether addresses are looked up: the command line names files with
// symbols, or the log contains its memory map.
func (f *frames) looked() bool { return f.named || f.locate(0).Location != nil }
