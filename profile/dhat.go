package profile

import (
	"bufio"
	"fmt"
	"strconv"
)

// shortLived is the mean lifetime, in microseconds, up to which the viewer's sort
// by short-lived blocks shows a call path ("tuth").
const shortLived = 500

// dhatSums are the numbers of an entry that events have beside its total.
type dhatSums struct {
	most, peak, end Value
	lifetime        float64 // microseconds
}

// writeDHAT writes what dh_view.html of valgrind opens: JSON, file version 2. A
// dump knows what is live and nothing of lifetimes, so its file says that it has
// none ("bklt"), and its totals are what is live. Events have them. Accesses
// ("bkacc") are not recorded.
func writeDHAT(w *bufio.Writer, n *Names, d *Dump, o ExportOptions) ([]string, error) {
	verb, end := "Live", d.Time
	var sums func(PathID) dhatSums
	e := o.Events
	if e != nil {
		verb, end = "Allocated", e.Last
		peak, lifetimes := e.AtPeak(), e.lifetimes()
		sums = func(id PathID) dhatSums {
			p := e.Path(id)
			return dhatSums{most: p.Max, peak: peak.Value(id), end: p.Live, lifetime: lifetimes[id]}
		}
		d = e.Ever()
	}
	fmt.Fprintf(w, "{\"dhatFileVersion\":2\n,\"mode\":\"heap\",\"verb\":%q\n,\"bklt\":%t,\"bkacc\":false\n", verb, e != nil)
	fmt.Fprintf(w, ",\"tu\":\"microseconds\",\"Mtu\":\"second\"\n")
	if e != nil {
		fmt.Fprintf(w, ",\"tuth\":%d\n", shortLived)
	}
	w.WriteString(",\"cmd\":")
	writeJSON(w, or(o.Command, or(d.Name, "live allocations")))
	fmt.Fprintf(w, "\n,\"pid\":0\n,\"te\":%d\n", end)
	if e != nil {
		fmt.Fprintf(w, ",\"tg\":%d\n", e.PeakTime)
	}
	w.WriteString(",\"pps\":\n [")
	// The viewer refuses two entries of one stack, so stacks of equal frames are
	// one entry. The most that it held is then at most the sum of both.
	f := &dhatFrames{names: n}
	s := &stackSums{stacks: stacks{expand: f.append}}
	var more array[dhatSums] // by row, of events
	var stack []SiteID
	for id, v := range d.Values() {
		if _, shown := n.AppendStack(stack[:0], id); !shown {
			continue
		}
		stack = f.append(stack[:0], id)
		row, saturated := s.add(stack, id, v)
		n.saturate(saturated)
		if e != nil {
			if row == more.n {
				more.push(dhatSums{})
			}
			more.at(row).add(sums(id))
		}
	}
	for i := range s.rows() {
		v := *s.sums.at(i)
		if i > 0 {
			w.WriteString(" ,")
		}
		fmt.Fprintf(w, "{\"tb\":%d,\"tbk\":%d\n", v.Bytes, v.Count)
		if e != nil {
			r := more.at(i)
			fmt.Fprintf(w, "  ,\"tl\":%.0f\n  ,\"mb\":%d,\"mbk\":%d\n  ,\"gb\":%d,\"gbk\":%d\n  ,\"eb\":%d,\"ebk\":%d\n", r.lifetime,
				r.most.Bytes, r.most.Count, r.peak.Bytes, r.peak.Count, r.end.Bytes, r.end.Count)
		}
		w.WriteString("  ,\"fs\":[")
		stack = s.append(stack[:0], i)
		for j, frame := range stack {
			if j > 0 {
				w.WriteByte(',')
			}
			w.WriteString(strconv.Itoa(int(frame) + 1)) // 0 is the root
		}
		w.WriteString("]\n  }\n")
	}
	w.WriteString(" ]\n,\"ftbl\":\n [\"[root]\"\n")
	for i := range f.texts.start.n {
		w.WriteString(" ,")
		writeJSON(w, string(f.texts.bytes(PathID(i))))
		w.WriteByte('\n')
	}
	_, err := w.WriteString(" ]\n}\n")
	return inexact(d, "dhat"), err
}

// dhatFrames numbers frames by their text: of frames of equal text, the viewer takes
// two stacks for one, which it refuses.
type dhatFrames struct {
	names *Names
	texts paths
	known array[dhatFramesOf] // by LocationID
	lists [][]SiteID
	path  []LocationID
}

// dhatFramesOf is the frames of a location: one, or those of a list.
type dhatFramesOf struct {
	n           uint32
	known, list bool
}

// number returns the number of a text.
func (f *dhatFrames) number(text string) SiteID {
	f.texts.key = append(f.texts.key[:0], text...)
	id, hash, slot, found := f.texts.find()
	if !found {
		id = f.texts.add(hash, slot)
	}
	return SiteID(id)
}

// append appends the frames of a call path, innermost first.
func (f *dhatFrames) append(dst []SiteID, id PathID) []SiteID {
	before := len(dst)
	f.path = f.names.prof.AppendPath(f.path[:0], id)
	for _, l := range f.path {
		for f.known.n <= int(l) {
			f.known.push(dhatFramesOf{})
		}
		of := f.known.at(int(l))
		if !of.known {
			*of = f.look(l)
		}
		if of.list {
			dst = append(dst, f.lists[of.n]...)
		} else {
			dst = append(dst, SiteID(of.n))
		}
	}
	if len(dst) == before {
		dst = append(dst, f.number("(no frames)"))
	}
	return dst
}

func (f *dhatFrames) look(l LocationID) dhatFramesOf {
	at := f.names.prof.LocationAt(l)
	var list []SiteID
	for _, frame := range f.names.Shown(l) {
		list = append(list, f.number(dhatFrame(at, frame)))
	}
	if len(list) == 1 {
		return dhatFramesOf{n: uint32(list[0]), known: true}
	}
	f.lists = append(f.lists, list)
	return dhatFramesOf{n: uint32(len(f.lists) - 1), known: true, list: true}
}

// add adds another stack of the same frames.
func (s *dhatSums) add(o dhatSums) {
	s.most.Add(o.most)
	s.peak.Add(o.peak)
	s.end.Add(o.end)
	s.lifetime += o.lifetime
}

// dhatFrame writes a frame as valgrind does: "0x109154: inner (a.c:4)".
func dhatFrame(l *Location, f Frame) string {
	if len(l.Frames) == 0 {
		f.Func = "???"
	}
	s := fmt.Sprintf("0x%X: %s", l.Call, f.Func)
	switch {
	case f.File != "" && f.Line > 0:
		return fmt.Sprintf("%s (%s:%d)", s, f.File, f.Line)
	case f.File != "":
		return fmt.Sprintf("%s (%s)", s, f.File)
	case l.Module != nil:
		return fmt.Sprintf("%s (in %s)", s, l.Module.Path)
	}
	return s
}
