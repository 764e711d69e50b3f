package profile

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/symbol"
)

// shortLived is the largest mean lifetime, in microseconds, of a call path that the viewer
// lists when it sorts by short-lived blocks ("tuth").
const shortLived = 500

// dhatPath is the value of an entry of the file.
type dhatPath struct {
	total, most, peak, end Value
	lifetime               float64 // seconds
}

// writeDHAT writes the JSON that valgrind's dh_view.html opens, file version 2. A dump has
// live blocks and no lifetimes, so its file announces no lifetimes ("bklt"), and the totals
// are the live values. Events have lifetimes. Accesses ("bkacc") are not recorded.
func writeDHAT(w *bufio.Writer, p *Profile, o ExportOptions) ([]string, error) {
	var notes []string
	f := &dhatFile{names: p.names(), texts: []string{"[root]"}, numbers: map[string]uint32{}, known: map[uint32][]uint32{}}
	d, _ := p.last()
	events := o.Replay != nil
	verb, end := "Live", d.Time
	if events {
		verb, end, d = "Allocated", o.Replay.totals.Last, o.Replay.Ever()
		if d.Len() > 0 { // an empty dump has no names
			f.names = newNames([]*Dump{d}, *f.names.view)
		}
		f.begin()
		notes = f.addReplay(o.Replay)
	} else {
		f.begin()
		for a := range f.names.showing(d.Allocations()) {
			f.add(f.stack(a.id), dhatPath{total: a.Value})
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
		fmt.Fprintf(w, ",\"tg\":%d\n", o.Replay.totals.PeakTime.Microseconds())
	}
	w.WriteString(",\"pps\":\n [")
	var frames []uint32
	for entry := range f.sums {
		if entry > 0 {
			w.WriteString(" ,")
		}
		frames = f.entries.append(frames[:0], uint32(entry))
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
	names   *names
	texts   []string
	numbers map[string]uint32   // by text
	known   map[uint32][]uint32 // numbers of its frames, by address
	entries stackTree           // of numbers of texts
	sums    []dhatPath          // by entry
	translation
}

// begin prepares for paths of names.
func (f *dhatFile) begin() {
	if f.names.in != nil {
		f.translation = translation{from: &f.names.in.stackTree, to: &f.entries, fold: f.names.view.Fold, list: f.frames, none: func() []uint32 { return []uint32{f.number("(no frames)")} }}
	}
}

func (f *dhatFile) addReplay(r *Replay) (notes []string) {
	lifetimes := r.lifetimes()
	paths := shownPaths{names: f.names}
	var list []int // of r.paths
	for i := range r.paths {
		if s := &r.paths[i]; !s.Total.IsZero() && s.path.in == f.names.in && paths.shows(s.path.id) {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return nil
	}
	kept := heaviestPaths(f.from, len(list), func(i int) (uint32, Value) { return r.paths[list[i]].path.id, r.paths[list[i]].Total })
	left := 0
	for k, i := range list {
		s := &r.paths[i]
		v := dhatPath{s.Total, s.Max, r.atPeak(s), s.Live, lifetimes[i]}
		if kept == nil || kept[k] {
			f.add(f.stack(s.path.id), v)
			continue
		}
		left++
		f.add(f.entries.add(0, []uint32{f.number(OtherName)}), v)
	}
	if left > 0 {
		notes = append(notes, limitNote(left))
	}
	return notes
}

// add adds a call path to an entry. The maximum of an entry is the sum of the maxima of its paths,
// which is an upper bound.
func (f *dhatFile) add(number uint32, v dhatPath) {
	entry := int(number)
	if entry == len(f.sums) {
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

// frames returns the numbers of an address's frames, with allocates and starts.
func (f *dhatFile) frames(addr uint32) []uint32 {
	list, known := f.known[addr]
	if !known {
		a := *f.names.in.addrs.at(int(addr))
		for _, frame := range f.names.frames(a) {
			list = append(list, f.number(dhatFrame(a, frame))|f.names.function(frame.Name).mark)
		}
		f.known[addr] = list
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
