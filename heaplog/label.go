package heaplog

import (
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// Label is a property by which [GroupBy] groups allocations.
type Label uint8

const (
	ByPath   Label = iota // the call path
	ByThread              // the thread that allocated
	BySize                // the size of the block
)

// GroupBy sets the call paths of dumps and events. With ByThread and BySize, each call path is
// one frame, such as "thread 7" or "64 bytes". Lines of call paths (~p#) do not record threads
// and sizes; a log with such lines is an error.
func GroupBy(l Label) Option { return func(c *config) error { c.label = l; return nil } }

// labels makes the frames of a [Label].
type labels struct {
	by    Label
	addrs map[string]symbol.Addr
	names map[uint64]string // of the threads of this boot
}

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

// path returns the call path with one frame.
func (l *labels) path(b *profile.Builder, name string) profile.Path {
	a, known := l.addrs[name]
	if !known {
		if l.addrs == nil {
			l.addrs = map[string]symbol.Addr{}
		}
		a = symbol.Addr{Location: &symbol.Location{Frames: []symbol.Frame{{Func: name, Name: name}}}}
		l.addrs[name] = a
	}
	return b.Path([]symbol.Addr{a})
}

// size returns the call path of blocks of a size.
func (l *labels) size(b *profile.Builder, bytes uint64) profile.Path {
	return l.path(b, fmt.Sprintf("%d bytes", bytes))
}

// thread returns the call path of a thread.
func (l *labels) thread(b *profile.Builder, thread uint64, known bool) profile.Path {
	if !known {
		return l.path(b, "(thread not recorded)")
	}
	if name := l.names[thread]; name != "" {
		return l.path(b, fmt.Sprintf("thread %d %s", thread, name))
	}
	return l.path(b, fmt.Sprintf("thread %d", thread))
}

// cutDepth is the number of frames at which libwebsockets and device/ cut a stack.
const cutDepth = 31

// pathOf returns the call path of a record.
func (l *labels) pathOf(b *profile.Builder, it *Item) profile.Path {
	d := it.decoded
	switch {
	case l.by == ByThread && it.User == nil:
		return l.thread(b, 0, false)
	case l.by == ByThread:
		t, known := it.User.Get(codec.TagThread)
		return l.thread(b, t, known)
	case l.by == BySize:
		return l.size(b, it.Allocs[0].Bytes)
	case !d.hasPath:
		stack := d.allocs[0].Stack
		if len(stack) >= cutDepth {
			stack = append(stack[:len(stack):len(stack)], profile.CutAddr(len(stack)))
		}
		d.path, d.hasPath = b.Path(stack), true
	}
	return d.path
}
