package naive

import (
	"fmt"
	"slices"
	"strings"
)

// key identifies a resolved path. written is the path as its line has it. (BT-NAME-2)
func (d *dumpReader) key(e, written *entry) string {
	if e.base >= 2 {
		switch d.bug {
		case "dumps-unknown-names-are-one":
			return "unknown"
		case "dumps-unknown-names-by-name":
			return fmt.Sprintf("%08x", d.nameOf(e.base, e.name, e.frames))
		case "dumps-unknown-names-by-words":
			e = written
		}
	}
	base := e.base
	if base == 1 && d.has("dumps-cut-paths-are-whole") {
		base = 0
	}
	text := d.plain.pathWords(&entry{base: base, name: e.name, frames: e.frames})
	if d.has("dumps-escaped-are-offsets") {
		text = strings.ReplaceAll(text, "@", "")
	}
	return text
}

// begin returns a path that begins with name 0 or 1 as one of base 0 or 1.
func (d *dumpReader) begin(e entry) entry {
	if e.base >= 2 && e.name <= 1 && !d.has("dumps-names-of-no-frames") {
		e.base, e.name = uint64(e.name), 0
	}
	return e
}

// toldPaths returns the paths that lines tell for a dump, by name.
func (d *dumpReader) toldPaths(p *pathDump) map[uint32][]entry {
	told := map[uint32][]entry{}
	for _, e := range p.told.entries {
		if !d.tells(e, p) {
			continue
		}
		w := d.begin(e.entry)
		for n := 1; n <= len(w.frames); n++ {
			if n < len(w.frames) && (d.has("dumps-names-of-whole-paths") || w.base >= 2 && d.has("dumps-outer-parts-of-names")) {
				continue
			}
			outer := entry{base: w.base, name: w.name, frames: w.frames[:n]}
			name := d.nameOf(outer.base, outer.name, outer.frames)
			if w.base >= 2 && name == w.name && !d.has("dumps-names-of-themselves") {
				continue
			}
			same := func(o entry) bool {
				return o.base == outer.base && o.name == outer.name && slices.Equal(o.frames, outer.frames)
			}
			if !slices.ContainsFunc(told[name], same) {
				told[name] = append(told[name], outer)
			}
		}
	}
	return told
}

// tells reports whether an entry defines names for a dump. Without a bug, all entries do.
func (d *dumpReader) tells(e *pathEntry, p *pathDump) bool {
	switch d.bug {
	case "dumps-names-of-own-lines":
		return e.dump == p
	case "dumps-names-not-of-definitions":
		return !e.def
	case "dumps-names-of-definitions":
		return e.def
	case "dumps-names-told-before":
		return !d.later(e, p)
	case "dumps-names-of-names":
		return e.base < 2
	case "dumps-names-not-of-cut-paths":
		return e.base != 1
	case "dumps-names-not-of-blocks":
		return len(e.blocks) == 0
	case "dumps-names-not-of-escapes":
		return !slices.ContainsFunc(e.frames, func(f frame) bool { return f.escaped })
	case "dumps-names-not-of-0-blocks":
		return e.def || e.live > 0
	}
	return true
}

// later reports whether an entry was read after a dump began.
func (d *dumpReader) later(e *pathEntry, p *pathDump) bool {
	return e.dump == nil && len(p.entries) > 0 && slices.Index(p.told.entries, e) > slices.Index(p.told.entries, p.entries[0]) ||
		e.dump != nil && slices.Index(d.dumps, e.dump) > slices.Index(d.dumps, p)
}

// differ reports whether two paths of one name are different paths.
func (d *dumpReader) differ(a, b entry) bool {
	if d.has("dumps-any-two-paths-differ") {
		return true
	}
	if len(a.frames) > len(b.frames) {
		a, b = b, a
	}
	end := b.frames[len(b.frames)-len(a.frames):]
	if d.has("dumps-paths-of-equal-outer-ends") {
		end = b.frames[:len(a.frames)]
	}
	if !slices.Equal(end, a.frames) {
		return !d.has("dumps-paths-by-innermost-frame") || a.frames[len(a.frames)-1] != b.frames[len(b.frames)-1]
	}
	return a.base < 2 && len(a.frames) < len(b.frames) && !d.has("dumps-short-whole-paths") || a.base < 2 && b.base < 2 && a.base != b.base
}

// find returns the path that a name stands for; ok is false if the name is not known.
func (d *dumpReader) find(told map[uint32][]entry, name uint32) (best entry, ok bool) {
	for i, c := range told[name] {
		switch {
		case i == 0:
			best = c
		case d.differ(best, c):
			switch d.bug {
			case "dumps-first-of-two-paths":
			case "dumps-last-of-two-paths":
				best = c
			default:
				return entry{}, false
			}
		case d.has("dumps-names-of-fewest-frames"):
			if len(c.frames) < len(best.frames) {
				best = c
			}
		case d.has("dumps-names-first-told"):
		case c.base < 2, best.base >= 2 && len(c.frames) > len(best.frames):
			best = c
		}
	}
	return best, len(told[name]) > 0
}

// resolve returns a path whose name, if known, is replaced by frames.
func (d *dumpReader) resolve(told map[uint32][]entry, e entry) entry {
	written, w := e, d.begin(e)
	limit := 1024
	switch d.bug {
	case "dumps-names-up-to-1023-frames":
		limit = 1023
	case "dumps-names-beyond-1024-frames":
		limit = 1025
	case "dumps-names-not-known":
		return w
	}
	for steps := 0; w.base >= 2; steps++ {
		found, ok := d.find(told, w.name)
		switch {
		case !ok, written.base == 3 && d.has("dumps-names-with-frames"),
			steps == 1 && d.has("dumps-names-one-deep"), steps == 2 && d.has("dumps-names-two-deep"):
			return w
		case found.base >= 2 && d.has("dumps-names-need-all-frames"):
			if whole := d.resolve(told, found); whole.base >= 2 {
				return w
			}
		}
		if len(found.frames)+len(w.frames) > limit {
			if d.has("dumps-too-deep-keeps-frames") {
				return w
			}
			return d.begin(written)
		}
		w = entry{base: found.base, name: found.name, frames: slices.Concat(found.frames, w.frames)}
	}
	return w
}
