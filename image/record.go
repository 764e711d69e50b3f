package image

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

// AppendLine appends the ~m# line of a block with its address as a user field, and
// those user fields that it had; bit for bit as in memory otherwise. It reports
// whether the block has a blob. (BT-UF-1)
func (h *Heap) AppendLine(dst []byte, block int) ([]byte, bool) {
	b := &h.Blocks[block]
	if b.Blob == nil {
		return dst, false
	}
	var u codec.User
	if h.User {
		var s codec.Stack
		if codec.DecodeUser(&s, &u, b.Blob, 64) != nil {
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

// WriteRecording writes a heap as a recording: boot, modules, and one dump of the
// blocks of which keep, if it is not nil, reports that they are to be in it.
// Blocks without a blob are missing in it, but counted as expected.
func (m *Image) WriteRecording(w io.Writer, h *Heap, keep func(block int) bool) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	head := func(verb string, keys ...codec.HeaderKey) {
		h := codec.Header{Verb: verb, HasNumber: verb == codec.VerbBegin || verb == codec.VerbEnd, Keys: keys}
		line, _ = codec.AppendHeader(line[:0], &h) // its keys are right
		line = append(line, '\n')
		out.Write(line)
	}
	num := func(key string, v uint64) codec.HeaderKey {
		return codec.HeaderKey{Key: key, Value: strconv.FormatUint(v, 10)}
	}
	boot := []codec.HeaderKey{}
	if m.Program != "" {
		boot = append(boot, codec.HeaderKey{Key: "prog", Value: m.Program})
	}
	if m.PID > 0 {
		boot = append(boot, num("pid", uint64(m.PID)))
	}
	head(codec.VerbBoot, append(boot, num("w", uint64(m.Word)))...)
	if modules := m.Modules(); len(modules) > 0 {
		head(codec.VerbMap)
		out.WriteString(moduleLines(modules))
	}
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
	head(codec.VerbBegin, num("n", expected), num("b", bytes), num("u", 1), codec.HeaderKey{Key: "why", Value: "image"})
	for i := range h.Blocks {
		if keep != nil && !keep(i) {
			continue
		}
		var ok bool
		if line, ok = h.AppendLine(line[:0], i); ok {
			out.Write(append(line, '\n'))
		}
	}
	head(codec.VerbEnd, num("n", n), num("b", bytes))
	return out.Flush()
}

// moduleLines returns modules in the markup of LLVM's symbolizer, with the whole of
// each path where that can be written in it.
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
