package profile

import (
	"bufio"
	"fmt"
	"strconv"
)

// writeDHAT writes what dh_view.html of valgrind opens: JSON, file version 2. A
// dump knows what is live and nothing of lifetimes or accesses, so the file says
// that it has none ("bklt", "bkacc"), and its totals are what is live.
func writeDHAT(w *bufio.Writer, n *Names, d *Dump, o ExportOptions) ([]string, error) {
	fmt.Fprintf(w, "{\"dhatFileVersion\":2\n,\"mode\":\"heap\",\"verb\":\"Live\"\n,\"bklt\":false,\"bkacc\":false\n")
	fmt.Fprintf(w, ",\"tu\":\"microseconds\",\"Mtu\":\"second\"\n,\"cmd\":")
	writeJSON(w, or(o.Command, or(d.Name, "live allocations")))
	fmt.Fprintf(w, "\n,\"pid\":0\n,\"te\":%d\n,\"pps\":\n [", d.Time)
	// The viewer refuses two entries of one stack, so stacks of equal frames are
	// one entry.
	var known paths
	var sums array[Value]
	index := map[string]LocationID{}
	var table []string
	entry := func(s string) LocationID {
		i, ok := index[s]
		if !ok {
			i = LocationID(len(table) + 1) // 0 is the root
			index[s] = i
			table = append(table, s)
		}
		return i
	}
	byLocation := map[LocationID][]LocationID{}
	var key []LocationID
	n.locationStacks(d, func(path []LocationID, v Value) error {
		key = key[:0]
		for _, l := range path {
			list, ok := byLocation[l]
			if !ok {
				at := n.prof.LocationAt(l)
				for _, f := range n.Shown(l) {
					list = append(list, entry(dhatFrame(at, f)))
				}
				byLocation[l] = list
			}
			key = append(key, list...)
		}
		if len(key) == 0 {
			key = append(key, entry("(no frames)"))
		}
		known.encode(key)
		row, hash, slot, found := known.find()
		if !found {
			row = known.add(hash, slot)
			sums.push(Value{})
		}
		n.saturate(sums.at(int(row)).Add(v))
		return nil
	})
	for i := range sums.n {
		v := *sums.at(i)
		if i > 0 {
			w.WriteString(" ,")
		}
		fmt.Fprintf(w, "{\"tb\":%d,\"tbk\":%d\n  ,\"fs\":[", v.Bytes, v.Count)
		key = known.append(key[:0], PathID(i))
		for j, f := range key {
			if j > 0 {
				w.WriteByte(',')
			}
			w.WriteString(strconv.Itoa(int(f)))
		}
		w.WriteString("]\n  }\n")
	}
	w.WriteString(" ]\n,\"ftbl\":\n [\"[root]\"\n")
	for _, s := range table {
		w.WriteString(" ,")
		writeJSON(w, s)
		w.WriteByte('\n')
	}
	_, err := w.WriteString(" ]\n}\n")
	return inexact(d, "dhat"), err
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
