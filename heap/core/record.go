package core

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// AppendLine appends the ~m# line of a block. It adds the address as a user field, and keeps
// other user fields and all other bits as they are in memory. It reports whether the block has
// a blob. (BT-UF-1)
func (h *Heap) AppendLine(dst []byte, block int) ([]byte, bool) {
	b := h.Blob(block)
	if b == nil {
		return dst, false
	}
	var u codec.User
	if h.User {
		var s codec.Stack
		if (codec.Decoder{}).Decode(&s, &u, b) != nil {
			u.Reset()
		}
	}
	u.Set(codec.TagAddress, h.Blocks[block].Addr)
	blob, err := codec.AppendUser(make([]byte, 0, codec.MaxBlobUser), b, &u)
	if err != nil {
		return dst, false
	}
	return codec.AppendLine(dst, blob), true
}

// recording writes the lines of a recording.
type recording struct {
	*bufio.Writer
	line []byte
}

func (r *recording) head(verb string, keys ...codec.HeaderKey) {
	h := codec.Header{Verb: verb, HasNumber: verb == codec.VerbBegin || verb == codec.VerbEnd, Keys: keys}
	r.line, _ = codec.AppendHeader(r.line[:0], &h) // the keys are valid
	r.line = append(r.line, '\n')
	r.Write(r.line)
}

func num(key string, v uint64) codec.HeaderKey {
	return codec.HeaderKey{Key: key, Value: strconv.FormatUint(v, 10)}
}

// boot begins a recording: it writes a boot, with keys, and the modules.
func (m *Image) boot(w io.Writer, keys ...codec.HeaderKey) *recording {
	r := &recording{Writer: bufio.NewWriterSize(w, 1<<16)}
	boot := []codec.HeaderKey{}
	if m.Program != "" {
		boot = append(boot, codec.HeaderKey{Key: "prog", Value: m.Program})
	}
	if m.PID > 0 {
		boot = append(boot, num("pid", uint64(m.PID)))
	}
	r.head(codec.VerbBoot, append(append(boot, num("w", uint64(m.Word))), keys...)...)
	if modules := m.Modules(); len(modules) > 0 {
		r.head("map")
		r.WriteString(moduleLines(modules))
	}
	return r
}

// WriteRecording writes a heap as a recording: boot, modules, and one dump. The dump contains
// the blocks for which keep returns true, or all blocks if keep is nil. Blocks without a
// blob are omitted; the number n in ~h#begin includes them.
func (m *Image) WriteRecording(w io.Writer, h *Heap, keep func(block int) bool) error {
	out := m.boot(w, h.bounds()...)
	n, bytes, missing := uint64(0), uint64(0), 0
	for i := range h.Blocks {
		switch b := &h.Blocks[i]; {
		case keep != nil && !keep(i):
		case !b.Sized():
			missing++
		default:
			n, bytes = n+1, addSize(bytes, b.Size)
		}
	}
	expected := n + uint64(missing)
	if keep == nil {
		expected = max(expected, uint64(h.Expected()))
	}
	out.head(codec.VerbBegin, num("n", expected), num("b", bytes), num("u", 1), codec.HeaderKey{Key: "why", Value: "image"})
	for i := range h.Blocks {
		if keep != nil && !keep(i) {
			continue
		}
		var ok bool
		if out.line, ok = h.AppendLine(out.line[:0], i); ok {
			out.Write(append(out.line, '\n'))
		}
	}
	if keep == nil {
		out.holes(h)
	}
	out.head(codec.VerbEnd, num("n", n), num("b", bytes))
	return out.Flush()
}

// bounds returns the key of ~h#boot with the range of each arena that has blocks, for heaps of allocators.
func (h *Heap) bounds() []codec.HeaderKey {
	var list []codec.Range
	first := 0
	for i := range h.free {
		var s span
		grow := func(start, end uint64) {
			if s.end == 0 {
				s.start = start
			}
			s.start, s.end = min(s.start, start), max(s.end, end)
		}
		for n := range h.Owners[i].Blocks {
			b := &h.Blocks[first+n]
			grow(b.Addr, addSize(b.Addr, b.Size))
		}
		for _, r := range h.free[i] {
			grow(r.Start, r.End)
		}
		first += h.Owners[i].Blocks
		if s.end > s.start {
			list = append(list, codec.Range{Start: s.start, Length: s.end - s.start})
		}
	}
	slices.SortFunc(list, func(a, b codec.Range) int { return cmp.Compare(a.Start, b.Start) })
	for i := 1; i < len(list); i++ {
		if list[i-1].Start+list[i-1].Length > list[i].Start { // blocks with mappings of their own are between arenas
			return nil
		}
	}
	if len(list) == 0 || len(list) > rangesPerLine {
		return nil
	}
	return []codec.HeaderKey{{Key: "heap", Value: codec.FormatRanges(list)}}
}

// rangesPerLine is the most ranges written in a line.
const rangesPerLine = 32

// holes writes the sums of the free memory of each arena, and where it is.
func (r *recording) holes(h *Heap) {
	for i, free := range h.free {
		if len(free) == 0 {
			continue
		}
		name := codec.HeaderKey{Key: "name", Value: fmt.Sprintf("%s at %#x", h.Owners[i].Name, h.Owners[i].Addr)}
		var list []codec.Range
		sum, largest := uint64(0), uint64(0)
		for _, f := range free {
			sum, largest = addSize(sum, f.End-f.Start), max(largest, f.End-f.Start)
			list = append(list, codec.Range{Start: f.Start, Length: f.End - f.Start})
		}
		r.head("heap", name, num("free", sum), num("largest", largest))
		for part := range slices.Chunk(list, rangesPerLine) {
			r.head("free", name, codec.HeaderKey{Key: "heap", Value: codec.FormatRanges(part)})
		}
	}
}

// moduleLines returns modules in the markup of LLVM's symbolizer. It writes the path of a
// module, or only the base name if the markup does not allow a character of the path.
func moduleLines(modules []Module) string {
	var b strings.Builder
	b.WriteString("{{{reset}}}\n")
	for id, d := range modules {
		name := d.Path
		if strings.ContainsAny(name, ":}\n\r{") || !printable(name) {
			name = strings.Map(func(r rune) rune {
				if strings.ContainsRune(":{}", r) || r < ' ' || r > '~' {
					return '_'
				}
				return r
			}, filepath.Base(name))
		}
		fmt.Fprintf(&b, "{{{module:%d:%s:elf:%s}}}\n", id, name, d.BuildID)
		for _, r := range d.Maps {
			flags := "r"
			if r.Write {
				flags += "w"
			}
			if r.Exec {
				flags += "x"
			}
			fmt.Fprintf(&b, "{{{mmap:%#x:%#x:load:%d:%s:%#x}}}\n", r.Start, r.End-r.Start, id, flags, r.Start-d.Bias)
		}
	}
	return b.String()
}

func printable(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < ' ' || c > '~' })
}
