package crash

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// Streams of a minidump, by number.
const (
	streamThreads   = 3
	streamModules   = 4
	streamMemory    = 5
	streamException = 6
	streamSystem    = 7
)

// Platforms on which the code of an exception is a signal.
const (
	platformLinux   = 0x8201
	platformAndroid = 0x8203
)

// miniReader reads the numbers of a minidump. Beyond the end of the file, all are 0.
type miniReader struct {
	b       []byte
	d       *Dump
	streams map[uint64]uint64 // offset by number
	stacks  map[uint64]uint64 // offset by address
	missing uint64            // bytes beyond the end of the file
}

func (r *miniReader) u32(at uint64) uint64 {
	if b := r.part(at, 4, "a number"); len(b) == 4 {
		return uint64(le.Uint32(b))
	}
	return 0
}

func (r *miniReader) u64(at uint64) uint64 { return r.u32(at) | r.u32(at+4)<<32 }

// part returns the bytes of a range that are in the file.
func (r *miniReader) part(at, size uint64, what string) []byte {
	have := uint64(0)
	if at < uint64(len(r.b)) {
		have = min(size, uint64(len(r.b))-at)
	}
	if have < size {
		if r.missing == 0 {
			r.d.damaged("the dump ends early: %s at byte %d has %d bytes, expected %d", what, at, have, size)
		}
		r.missing += size - have
	}
	if have == 0 {
		return nil
	}
	return r.b[at:][:have]
}

// list yields the offsets of the entries in a stream: a count, then entries of size bytes. The count is limited to
// what is in the file.
func (r *miniReader) list(stream, size uint64) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		at, ok := r.streams[stream]
		if !ok {
			return
		}
		n := r.u32(at)
		if most := uint64(len(r.b)) / size; n > most {
			r.d.damaged("stream %d has %d entries, more than the dump has bytes for", stream, n)
			n = most
		}
		for i := range n {
			if !yield(at + 4 + size*i) {
				return
			}
		}
	}
}

// readMinidump reads a minidump of Breakpad or Crashpad, of x86-64.
func readMinidump(b []byte, d *Dump) error {
	d.Format, d.Word = "Breakpad or Crashpad (minidump)", 64
	if len(b) < 32 {
		return fmt.Errorf("%d bytes, expected a header of 32", len(b))
	}
	r := &miniReader{b: b, d: d, streams: map[uint64]uint64{}, stacks: map[uint64]uint64{}}
	n, at := r.u32(8), r.u32(12)
	for i := range min(n, uint64(len(b))/12) {
		e := at + 12*i
		if kind := r.u32(e); r.streams[kind] == 0 {
			r.streams[kind] = r.u32(e + 8)
		}
	}
	if r.streams[streamSystem] == 0 {
		return fmt.Errorf("no stream %d (system information) among %d streams", streamSystem, len(r.streams))
	}
	if cpu := r.u32(r.streams[streamSystem]) & 0xffff; cpu != 9 {
		return fmt.Errorf("processor %d, expected 9: only x86-64 is read", cpu)
	}
	d.Machine = elf.EM_X86_64
	r.threads()
	for e := range r.list(streamMemory, 16) {
		addr, size := r.u64(e), r.u32(e+8)
		if at := r.u32(e + 12); at != r.stacks[addr] { // stacks are listed twice
			d.add(addr, r.part(at, size, "memory"))
		}
	}
	r.modules()
	d.about("minidump of %d threads", len(d.Threads))
	if names := environment(d.Memory); len(names) > 0 {
		d.about("its memory has variables of the process's environment, which may be secrets: %s", strings.Join(names, ", "))
	}
	if r.missing > 0 {
		d.damaged("%d bytes that the dump refers to are missing from it", r.missing)
	}
	if len(d.Threads)+len(d.Memory) == 0 {
		return fmt.Errorf("neither threads nor memory in %d bytes", len(b))
	}
	return nil
}

// threads reads the threads and their stacks, first the thread of the exception.
func (r *miniReader) threads() {
	crashed, excepted := uint64(0), false
	if at, ok := r.streams[streamException]; ok {
		crashed, excepted = r.u32(at), true
		t := r.context(r.u32(at+164), r.u32(at+160))
		t.ID, t.Crashed = crashed, true
		code, what := r.u32(at+8), "exception"
		if platform := r.u32(r.streams[streamSystem] + 20); platform == platformLinux || platform == platformAndroid {
			t.Signal, what = int(code), "signal"
		}
		r.d.about("%s %#x at address %#x", what, code, r.u64(at+24))
		r.d.addThread(t)
	}
	for e := range r.list(streamThreads, 48) {
		r.stacks[r.u64(e+24)] = r.u32(e + 36)
		r.d.add(r.u64(e+24), r.part(r.u32(e+36), r.u32(e+32), "a stack"))
		if id := r.u32(e); !excepted || id != crashed {
			t := r.context(r.u32(e+44), r.u32(e+40))
			t.ID = id
			r.d.addThread(t)
		}
	}
}

// context reads the registers of a thread: CONTEXT of x86-64 has rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8-r15, rip from byte
// 0x78 on.
func (r *miniReader) context(at, size uint64) (t Thread) {
	const first, count = 0x78, 17
	b := r.part(at, size, "registers")
	if len(b) < first+8*count {
		if r.missing == 0 {
			r.d.damaged("registers at byte %d have %d bytes, expected %d", at, len(b), first+8*count)
		}
		return t
	}
	w := words(b[first:first+8*count], 8)
	t.set(w, 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16)
	t.PC = w[count-1]
	return t
}

// modules reads the mapped files: base u64, size u32, name at 20 (a length in bytes, then UTF-16), at 76 size and place of the
// build ID.
func (r *miniReader) modules() {
	const maxName = 8192
	for e := range r.list(streamModules, 108) {
		m := Module{Base: r.u64(e), Size: r.u32(e + 8)}
		name := r.u32(e + 20)
		text := r.part(name+4, min(r.u32(name), maxName), "the name of a module")
		units := make([]uint16, len(text)/2)
		for i := range units {
			units[i] = le.Uint16(text[2*i:])
		}
		m.Path = string(utf16.Decode(units))
		if cv := r.part(r.u32(e+80), min(r.u32(e+76), 68), "a build ID"); bytes.HasPrefix(cv, []byte("LEpB")) {
			m.BuildID = hex.EncodeToString(cv[4:])
		}
		if len(r.d.Modules) < maxMemory {
			r.d.Modules = append(r.d.Modules, m)
		}
	}
}

// maxNames is the most names that environment returns.
const maxNames = 12

// environment returns names of variables in an environment: at least three strings NAME=value, each with a 0 after it,
// one behind the other.
func environment(memory []Memory) (names []string) {
	for _, m := range memory {
		var run []string
		for b := m.Data; len(b) > 0; {
			var text []byte
			text, b, _ = bytes.Cut(b, []byte{0})
			name, _, ok := bytes.Cut(text, []byte{'='})
			if ok && isVariable(name) {
				run = append(run, string(name))
				continue
			}
			if len(run) >= 3 {
				names = append(names, run...)
			}
			run = nil
		}
		if len(run) >= 3 {
			names = append(names, run...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if n := len(names); n > maxNames {
		return append(names[:maxNames:maxNames], fmt.Sprintf("and %d more", n-maxNames))
	}
	return names
}

func isVariable(name []byte) bool {
	for i, c := range name {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return len(name) >= 2 && len(name) < 256
}
