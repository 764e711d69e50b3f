package core

import (
	"bufio"
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
	b := &h.Blocks[block]
	if b.Blob == nil {
		return dst, false
	}
	var u codec.User
	if h.User {
		var s codec.Stack
		if (codec.Decoder{}).Decode(&s, &u, b.Blob) != nil {
			u.Reset()
		}
	}
	u.Set(codec.TagAddress, b.Addr)
	blob, err := codec.AppendUser(make([]byte, 0, codec.MaxBlobUser), b.Blob, &u)
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
		r.head(codec.VerbMap)
		r.WriteString(moduleLines(modules))
	}
	return r
}

// WriteRecording writes a heap as a recording: boot, modules, and one dump. The dump contains
// the blocks for which keep returns true, or all blocks if keep is nil. Blocks without a
// blob are omitted; the number n in ~h#begin includes them.
func (m *Image) WriteRecording(w io.Writer, h *Heap, keep func(block int) bool) error {
	out := m.boot(w)
	n, bytes, missing := uint64(0), uint64(0), 0
	for i := range h.Blocks {
		switch b := &h.Blocks[i]; {
		case keep != nil && !keep(i):
		case b.Blob == nil:
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
	out.head(codec.VerbEnd, num("n", n), num("b", bytes))
	return out.Flush()
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
