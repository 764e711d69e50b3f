package core

import (
	"io"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// WritePaths writes tables of call paths as a recording by call path: a boot with the code ranges, modules, and
// one dump. (BT-DUMP-1)
func (m *Image) WritePaths(w io.Writer, profiles []*Profile) error {
	code, shift := codeOf(profiles)
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
	var lines callpath.Writer
	for _, p := range profiles {
		if p.History {
			lines.Flags = callpath.Ever | callpath.Peak
		}
		sample = max(sample, p.Sample)
		for i := range p.Entries {
			e := &p.Entries[i]
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
	}
	begin := []codec.HeaderKey{{Key: "k", Value: "paths"}, num("n", live), num("b", bytes), num("l", 0)}
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

// codeOf returns the code ranges of tables, and the shift of their offsets. If the tables have none, it infers the ranges from
// the addresses.
func codeOf(profiles []*Profile) (code []codec.Range, shift int) {
	var all []uint64
	for _, p := range profiles {
		for _, x := range p.Code {
			if len(code) == 0 {
				shift = p.Shift
			}
			if !slices.Contains(code, x) {
				code = append(code, x)
				shift = min(shift, p.Shift)
			}
		}
		for i := range p.Entries {
			all = append(all, p.Entries[i].Frames...)
		}
	}
	if len(code) > 0 {
		return code, shift
	}
	return callpath.InferRanges(all)
}
