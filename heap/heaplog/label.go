package heaplog

import (
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol"
)

// Label is a property by which [GroupBy] groups allocations.
type Label uint8

const (
	ByPath       Label = iota // the call path
	ByThread                  // the thread that allocated
	BySize                    // the size of the block
	ByThreadPath              // the call path, with the thread as its outermost frame
	ByHeap                    // the heap that the block is in, where the trace of another system names it
)

// GroupBy groups the allocations of dumps and events by a label, which replaces their call
// paths. With ByThread, BySize or ByHeap, each call path has one frame, such as "thread 7",
// "64 bytes" or "heap PSRAM". With ByThreadPath, the frame of the thread is added to the call path. Lines of
// call paths (~p#) record neither threads nor sizes nor heaps: dumps with such lines are left out, and
// are an error if the log has no events before them, unless the label is ByPath.
func GroupBy(l Label) Option {
	return Option{"GroupBy", func(c *config) error {
		if l > ByHeap {
			return fmt.Errorf("%d, expected one of the constants", l)
		}
		c.label = l
		return nil
	}}
}

// labels makes the frames of a [Label].
type labels struct {
	by     Label
	frames frames
	names  map[uint64]string // of the threads of this boot
}

// frames are the frames of labels by name. All passes of a Reader share them, so that a call path is
// the same in all its dumps.
type frames map[string]symbol.Addr

func newLabels(by Label, f frames) *labels { return &labels{by: by, frames: f} }

// header takes the name of a thread, "~h#thread 7 name=mqtt". It counts for the blocks that
// follow. A boot forgets the names.
func (l *labels) header(h *codec.Header) {
	switch h.Verb {
	case codec.VerbBoot:
		l.names = nil
	case "thread":
		name, ok := h.Get("name")
		if !ok || !h.HasNumber || len(l.names) >= maxThreadNames {
			return
		}
		if l.names == nil {
			l.names = map[uint64]string{}
		}
		l.names[uint64(h.Number)] = printable.Text(name)
	}
}

// maxThreadNames is the largest number of threads of a boot that have names.
const maxThreadNames = 1 << 16

// frame returns the address with a name.
func (l *labels) frame(name string) symbol.Addr {
	a, known := l.frames[name]
	if !known {
		a = namedAddr(name)
		l.frames[name] = a
	}
	return a
}

// size returns the frame of blocks of a size.
func (l *labels) size(bytes uint64) symbol.Addr { return l.frame(fmt.Sprintf("%d bytes", bytes)) }

// thread returns the frame of a thread.
func (l *labels) thread(thread uint64, known bool) symbol.Addr {
	if !known {
		return l.frame("(thread not recorded)")
	}
	if name := l.names[thread]; name != "" {
		if thread >= maxThreadNames { // a pointer, which tells nothing
			return l.frame("thread " + name)
		}
		return l.frame(fmt.Sprintf("thread %d %s", thread, name))
	}
	return l.frame(fmt.Sprintf("thread %d", thread))
}

// threadOf returns the frame of the thread of a record.
func (l *labels) threadOf(it *Item) symbol.Addr {
	if it.User == nil {
		return l.thread(0, false)
	}
	return l.thread(it.User.Get(codec.TagThread))
}

// heapOf returns the frame of the heap of a record.
func (l *labels) heapOf(at *placed) symbol.Addr {
	if u := at.item.User; u != nil && at.memory != nil {
		if address, known := u.Get(codec.TagAddress); known {
			if name := at.memory(address); name != "" {
				return l.frame("heap " + printable.Text(name))
			}
		}
	}
	return l.frame("(heap not recorded)")
}

// cutDepth is the number of frames at which libwebsockets and device/ cut a stack.
const cutDepth = 31

// pathOf returns the call path of a record.
func (l *labels) pathOf(b *profile.Builder, at *placed) profile.Path {
	it := at.item
	d := it.located
	switch {
	case l.by == ByThread:
		return b.Path([]symbol.Addr{l.threadOf(it)})
	case l.by == BySize:
		return b.Path([]symbol.Addr{l.size(it.Allocs[0].Bytes)})
	case l.by == ByHeap:
		return b.Path([]symbol.Addr{l.heapOf(at)})
	case l.by == ByThreadPath:
		return b.Path(append(wholeStack(d), l.threadOf(it)))
	case len(d.allocs[0].Stack) == 0 && it.User != nil: // who allocated is better than nothing
		if thread, known := it.User.Get(codec.TagThread); known {
			return b.Path([]symbol.Addr{l.thread(thread, true)})
		}
		return b.Path(nil)
	case !d.hasPath:
		d.path, d.hasPath = b.Path(wholeStack(d)), true
	}
	return d.path
}

// wholeStack returns the stack of a record, with a frame that says so if it was cut.
func wholeStack(d *located) []symbol.Addr {
	stack := d.allocs[0].Stack
	stack = stack[:len(stack):len(stack)]
	if len(stack) >= cutDepth {
		stack = append(stack, profile.CutAddr(len(stack)))
	}
	return stack
}
