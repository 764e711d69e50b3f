package export

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
	"github.com/lwsbt/lwsbt/symbol"
)

// shortLived is the largest mean lifetime, in microseconds, of a call path that the viewer
// lists when it sorts by short-lived blocks ("tuth").
const shortLived = 500

// dhatPath is the value of an entry of the file.
type dhatPath struct {
	total, most, peak, end profile.Value
	lifetime               float64 // seconds
}

// writeDHAT writes the JSON that valgrind's dh_view.html opens, file version 2. A dump has
// live blocks and no lifetimes, so its file announces no lifetimes ("bklt"), and the totals
// are the live values. Events have lifetimes. Accesses ("bkacc") are not recorded.
func writeDHAT(w *bufio.Writer, p *profile.Profile, o Options) ([]string, error) {
	var notes []string
	f := &dhatFile{p: p, texts: []string{"[root]"}, numbers: map[string]uint32{}, known: map[symbol.Addr][]uint32{},
		frames: newTree(), entries: map[uint32]int{}}
	d, _ := last(p)
	events := o.Replay != nil
	verb, end := "Live", d.Time
	if events {
		verb, end, d = "Allocated", o.Replay.Totals().Last, o.Replay.Ever()
		if d.Len() > 0 {
			ever, err := profile.New(d)
			if err != nil {
				return nil, err
			}
			f.p = ever.View(p.Current())
		}
		notes = f.addReplay(o.Replay, d)
	} else {
		for a, addrs := range p.Stacks() {
			if !a.IsZero() {
				f.add(addrs, dhatPath{total: a.Value})
			}
		}
	}
	fmt.Fprintf(w, "{\"dhatFileVersion\":2\n,\"mode\":\"heap\",\"verb\":%q\n,\"bklt\":%t,\"bkacc\":false\n", verb, events)
	fmt.Fprintf(w, ",\"tu\":\"microseconds\",\"Mtu\":\"second\"\n")
	if events {
		fmt.Fprintf(w, ",\"tuth\":%d\n", shortLived)
	}
	w.WriteString(",\"cmd\":")
	writeJSON(w, cmp.Or(o.Command, cmp.Or(d.Name, "live allocations")))
	fmt.Fprintf(w, "\n,\"pid\":0\n,\"te\":%d\n", end.Microseconds())
	if events {
		fmt.Fprintf(w, ",\"tg\":%d\n", o.Replay.Totals().PeakTime.Microseconds())
	}
	w.WriteString(",\"pps\":\n [")
	var frames []uint32
	for entry := range f.sums {
		if entry > 0 {
			w.WriteString(" ,")
		}
		frames = f.frames.append(frames[:0], f.nodes[entry])
		f.sums[entry].write(w, frames, events)
	}
	w.WriteString(" ]\n,\"ftbl\":\n [")
	writeJoined(w, " ,", slices.Values(f.texts), func(text string) {
		writeJSON(w, text)
		w.WriteByte('\n')
	})
	_, err := w.WriteString(" ]\n}\n")
	return append(notes, inexact(d, "dhat")...), err
}

// dhatFile collects frames and entries. The viewer rejects two entries with the same texts,
// so call paths with the same texts share an entry.
type dhatFile struct {
	p       *profile.Profile
	texts   []string
	numbers map[string]uint32        // by text
	known   map[symbol.Addr][]uint32 // numbers of its frames, innermost first
	frames  *tree                    // of numbers of texts
	entries map[uint32]int           // by node of frames
	nodes   []uint32                 // by entry
	sums    []dhatPath               // by entry
}

// addReplay adds the call paths of events, of which d has the values ever allocated.
func (f *dhatFile) addReplay(r *replay.Replay, d *profile.Dump) (notes []string) {
	kept, left := d.Heaviest()
	churn := map[profile.Path]replay.Churn{}
	for path, c := range r.Paths() {
		churn[path] = c
	}
	for a, addrs := range f.p.Stacks() {
		c := churn[a.Path]
		v := dhatPath{c.Total, c.Max, c.Peak, c.Live, c.Lifetime + c.Age}
		if kept(a.Path) {
			f.add(addrs, v)
			continue
		}
		f.addTo(f.frames.below(0, f.number(profile.OtherName)), v)
	}
	if left > 0 {
		notes = append(notes, limitNote(left))
	}
	return notes
}

// add adds a call path.
func (f *dhatFile) add(addrs []symbol.Addr, v dhatPath) {
	node := uint32(0)
	for i, a := range slices.Backward(addrs) {
		frames := f.framesOf(a)
		if i == 0 && f.p.Current().Fold { // of an address with inlined calls
			frames = frames[f.allocators(a, frames):]
		}
		for _, n := range slices.Backward(frames) {
			node = f.frames.below(node, n)
		}
	}
	if node == 0 {
		node = f.frames.below(0, f.number("(no frames)"))
	}
	f.addTo(node, v)
}

// allocators returns the number of innermost frames that are allocators, 0 if all are.
func (f *dhatFile) allocators(a symbol.Addr, frames []uint32) int {
	for i, frame := range f.p.Frames(a) {
		if i < len(frames) && !profile.Allocator(frame.Name) {
			return i
		}
	}
	return 0
}

// addTo adds a value to the entry of a node of frames. The maximum of an entry is the sum of the
// maxima of its paths, which is an upper bound.
func (f *dhatFile) addTo(node uint32, v dhatPath) {
	entry, known := f.entries[node]
	if !known {
		entry = len(f.sums)
		f.entries[node] = entry
		f.nodes = append(f.nodes, node)
		f.sums = append(f.sums, dhatPath{})
	}
	sum := &f.sums[entry]
	sum.total.Add(v.total)
	sum.most.Add(v.most)
	sum.peak.Add(v.peak)
	sum.end.Add(v.end)
	sum.lifetime += v.lifetime
}

// number returns the number of a text.
func (f *dhatFile) number(text string) uint32 {
	n, known := f.numbers[text]
	if !known {
		n = uint32(len(f.texts))
		f.texts = append(f.texts, text)
		f.numbers[text] = n
	}
	return n
}

// framesOf returns the numbers of an address's frames, innermost first.
func (f *dhatFile) framesOf(a symbol.Addr) []uint32 {
	list, known := f.known[a]
	if !known {
		for _, frame := range f.p.Frames(a) {
			list = append(list, f.number(dhatFrame(a, frame)))
		}
		f.known[a] = list
	}
	return list
}

// write writes an entry with these frames.
func (s *dhatPath) write(w *bufio.Writer, frames []uint32, events bool) {
	fmt.Fprintf(w, "{\"tb\":%d,\"tbk\":%d\n", s.total.Bytes, s.total.Count)
	if events {
		fmt.Fprintf(w, "  ,\"tl\":%.0f\n  ,\"mb\":%d,\"mbk\":%d\n  ,\"gb\":%d,\"gbk\":%d\n  ,\"eb\":%d,\"ebk\":%d\n", s.lifetime*1e6,
			s.most.Bytes, s.most.Count, s.peak.Bytes, s.peak.Count, s.end.Bytes, s.end.Count)
	}
	w.WriteString("  ,\"fs\":[")
	for i, frame := range frames {
		if i > 0 {
			w.WriteByte(',')
		}
		writeUint(w, uint64(frame))
	}
	w.WriteString("]\n  }\n")
}

// dhatFrame formats a frame as valgrind does: "0x109154: inner (a.c:4)".
func dhatFrame(a symbol.Addr, f symbol.Frame) string {
	name := f.Name
	if len(a.Frames()) == 0 {
		name = "???"
	}
	s := fmt.Sprintf("0x%X: %s", callOf(&a), name)
	switch {
	case f.File != "" && f.Line > 0:
		return fmt.Sprintf("%s (%s:%d)", s, f.File, f.Line)
	case f.File != "":
		return fmt.Sprintf("%s (%s)", s, f.File)
	case a.Location != nil && a.Location.Module != nil:
		return fmt.Sprintf("%s (in %s)", s, a.Location.Module.Name)
	}
	return s
}

// callOf returns the address in memory of the call before return address a, or a itself if
// nothing is known of it.
func callOf(a *symbol.Addr) uint64 {
	if l := a.Location; l != nil && (l.Module != nil || len(l.Frames) > 0) {
		return l.Call
	}
	return a.PC
}
