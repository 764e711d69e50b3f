package core

import (
	"debug/elf"
	"io"
	"slices"
	"strconv"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// PathDump is the contents of the dump that [Image.WritePaths] writes.
type PathDump struct {
	Profiles []*Profile
	Heap     *Heap // or nil
	// Keep, if not nil, reports whether to write a block of Heap.
	Keep func(block int) bool
	// Code is the code of the program. It is used if no profile contains code ranges. If
	// both are missing, WritePaths infers the code from the addresses.
	Code  []codec.Range
	Shift int
}

// WritePaths writes a recording by call path: a boot with the code ranges, modules, and
// one dump. Blocks of d.Heap without a blob are counted under the cut path without frames.
// (BT-DUMP-1)
func (m *Image) WritePaths(w io.Writer, d PathDump) error {
	blocks := d.blocks(m)
	code, shift := d.code(blocks)
	ranges := callpath.Ranges{Shift: uint8(shift)}
	for _, x := range code {
		ranges.Add(x, "")
	}
	var keys []codec.HeaderKey
	if len(code) > 0 {
		keys = append(keys, codec.HeaderKey{Key: "code", Value: codec.FormatRanges(code)}, num("shift", uint64(shift)))
	}
	out := m.boot(w, keys...)
	var entries []callpath.Entry
	var live, bytes, cut uint64
	sample := uint32(0)
	add := func(e *ProfileEntry) {
		x := callpath.Entry{Path: callpath.Path{Base: e.Base}, Live: e.Live, Bytes: e.Bytes,
			Allocs: e.Allocs, AllocBytes: e.AllocBytes, Peak: e.Peak}
		for _, a := range e.Frames {
			x.Frames = append(x.Frames, ranges.Frame(a))
		}
		entries = append(entries, x)
		live, bytes = addSize(live, e.Live), addSize(bytes, e.Bytes)
		if e.Cut {
			cut = addSize(cut, e.Live)
		}
	}
	var lines callpath.Writer
	for _, p := range d.Profiles {
		if p.History {
			lines.Flags = callpath.Ever | callpath.Peak
		}
		sample = max(sample, p.Sample)
		for i := range p.Entries {
			add(&p.Entries[i])
		}
	}
	for i := range blocks {
		add(&blocks[i])
	}
	expected := live
	if d.Heap != nil && d.Keep == nil {
		expected = addSize(live, uint64(d.Heap.Expected()-len(d.Heap.Blocks)))
	}
	begin := []codec.HeaderKey{{Key: "k", Value: "paths"}, num("n", expected), num("b", bytes), num("l", 0)}
	if sample > 0 {
		begin = append(begin, num("sample", uint64(sample)))
	}
	out.head(codec.VerbBegin, append(begin, codec.HeaderKey{Key: "why", Value: "image"})...)
	slices.SortStableFunc(entries, func(a, b callpath.Entry) int { return callpath.Compare(&a.Path, &b.Path) })
	var err error
	for i := range entries {
		if out.line, err = lines.Append(out.line[:0], &entries[i]); err != nil {
			return err
		}
		out.Write(out.line)
	}
	out.Write(lines.Flush(nil))
	end := []codec.HeaderKey{num("n", live), num("b", bytes), num("l", lines.Lines)}
	if cut > 0 {
		end = append(end, num("cut", cut))
	}
	out.head(codec.VerbEnd, end...)
	return out.Flush()
}

// blocks adds up the blocks of the heap, by call path.
func (d *PathDump) blocks(m *Image) (list []ProfileEntry) {
	if d.Heap == nil {
		return nil
	}
	index := map[string]int{}
	var key []byte
	var s codec.Stack
	for i := range d.Heap.Blocks {
		b := &d.Heap.Blocks[i]
		if d.Keep != nil && !d.Keep(i) {
			continue
		}
		s.PCs = s.PCs[:0]
		base := callpath.Cut
		if b.Sized() && (codec.Decoder{Word: m.Word}).Decode(&s, nil, d.Heap.Blob(i)) == nil && len(s.PCs) < codec.MaxDepth-1 { // lws captures no more
			base = callpath.Whole
		}
		frames := make([]uint64, 0, len(s.PCs))
		key = append(key[:0], byte(base))
		for _, pc := range slices.Backward(s.PCs) {
			if m.Machine == elf.EM_ARM || m.Machine == elf.EM_MIPS {
				pc &^= 1 // bit 0 marks Thumb or MIPS16
			}
			frames = append(frames, pc)
			key = append(strconv.AppendUint(key, pc, 36), ' ')
		}
		at, ok := index[string(key)]
		if !ok {
			at = len(list)
			index[string(key)] = at
			list = append(list, ProfileEntry{Base: base, Frames: frames})
		}
		list[at].Live++
		list[at].Bytes = addSize(list[at].Bytes, b.Size)
	}
	return list
}

// code returns the code ranges of the dump: those of the profiles, else d.Code, else inferred.
func (d *PathDump) code(blocks []ProfileEntry) (code []codec.Range, shift int) {
	for _, p := range d.Profiles {
		for _, x := range p.Code {
			if len(code) == 0 {
				shift = p.Shift
			}
			if !slices.Contains(code, x) {
				code = append(code, x)
				shift = min(shift, p.Shift)
			}
		}
	}
	if len(code) > 0 {
		return code, shift
	}
	if len(d.Code) > 0 {
		return d.Code, d.Shift
	}
	var all []uint64
	for i := range blocks {
		all = append(all, blocks[i].Frames...)
	}
	return callpath.InferRanges(all)
}
