package main

import (
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// frames caches, for each address, its text in the output.
type frames struct {
	filter *profile.Filter // has --hide only
	render func(a symbol.Addr, shown []symbol.Frame) string
	cache  map[symbol.Addr]string

	named  bool                        // the command line names files with symbols
	locate func(pc uint64) symbol.Addr // has a Location if the log has a memory map
}

// maxRendered is the largest number of cached addresses.
const maxRendered = 1 << 16

func newFrames(o *options, r *heaplog.Reader) *frames {
	return &frames{filter: &o.Filter, cache: map[symbol.Addr]string{}, named: o.Named(), locate: r.Locate}
}

// text returns an address in the output, "" if all its frames are hidden.
func (f *frames) text(a symbol.Addr) string {
	if text, known := f.cache[a]; known {
		return text
	}
	if len(f.cache) >= maxRendered {
		clear(f.cache)
	}
	shown := a.Frames()
	list, _, _ := f.filter.Frames(nil, a)
	if len(shown) > 0 { // else the only frame is the address
		shown = list
	}
	text := ""
	if len(list) > 0 {
		text = f.render(a, shown)
	}
	f.cache[a] = text
	return text
}

// looked reports whether addresses are looked up: the command line names files with
// symbols, or the log contains its memory map.
func (f *frames) looked() bool { return f.named || f.locate(0).Location != nil }
