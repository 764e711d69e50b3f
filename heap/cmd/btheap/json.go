package main

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/heap/internal/heapmap"
	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// object is a JSON object. heap/docs/btheap.schema.json describes those that --json writes.
type object map[string]any

// schemaVersion is the version of the schema. It changes when a field changes its meaning.
const schemaVersion = 3

// list is a JSON array whose elements are made when they are written: its call stacks may be many
// times as large as the log. It stands in no other value than the object of a command.
type list iter.Seq[any]

// writeJSON writes the output of a command, indented by indent.
func writeJSON(w io.Writer, indent, command string, fields object) error {
	fields["command"], fields["version"] = command, schemaVersion
	var line bytes.Buffer
	e := json.NewEncoder(&line) // one for all elements: it keeps its memory
	e.SetEscapeHTML(false)
	write := func(before string, depth int, v any) error {
		line.Reset()
		line.WriteString(before)
		e.SetIndent(strings.Repeat(indent, depth), indent)
		if err := e.Encode(v); err != nil {
			return err
		}
		_, err := w.Write(bytes.TrimSuffix(line.Bytes(), []byte("\n")))
		return err
	}
	newLine := func(depth int) string {
		if indent == "" {
			return ""
		}
		return "\n" + strings.Repeat(indent, depth)
	}
	colon := ":" + strings.Repeat(" ", min(1, len(indent)))
	before := "{"
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		field := before + newLine(1) + strconv.Quote(key) + colon
		before = ","
		elements, ok := fields[key].(list)
		if !ok {
			if err := write(field, 1, fields[key]); err != nil {
				return err
			}
			continue
		}
		io.WriteString(w, field)
		end, separator := "[]", "["
		for v := range elements {
			if err := write(separator+newLine(2), 2, v); err != nil {
				return err
			}
			end, separator = newLine(1)+"]", ","
		}
		io.WriteString(w, end)
	}
	_, err := io.WriteString(w, newLine(0)+"}\n")
	return err
}

// listJSON returns the objects of the elements of a list.
func listJSON[T any](all []T, convert func(*T) any) list {
	return func(yield func(any) bool) {
		for i := range all {
			if !yield(convert(&all[i])) {
				return
			}
		}
	}
}

// dumpsJSON returns the objects of dumps.
func dumpsJSON(dumps []*profile.Dump) list {
	return listJSON(dumps, func(d **profile.Dump) any { return dumpJSON(*d) })
}

func dumpJSON(d *profile.Dump) object {
	j := object{"name": d.Name, "file": d.File, "boot": d.Boot, "number": d.Number, "records": d.Records, "complete": d.Complete(),
		"bytes": d.Total.Bytes, "count": d.Total.Count}
	if d.Line > 0 {
		j["line"] = d.Line
	}
	if d.Timed {
		j["time"] = d.Time.Seconds()
	}
	if d.Why != "" {
		j["why"] = d.Why
	}
	if missing, known := d.Missing(); known {
		j["missing"] = missing
	}
	return j
}

// leakDumpJSON returns the object of a dump with whether it was used.
func leakDumpJSON(d *growth.LeakDump) any {
	j := dumpJSON(d.Dump)
	j["used"] = d.Used
	if d.Reason != "" {
		j["reason"] = d.Reason
	}
	if d.Note != "" {
		j["note"] = d.Note
	}
	return j
}

// judgementJSON returns the object of a judgement, without what has no number.
func judgementJSON(j *leak.Judgement, per growth.Unit) object {
	number := func(v float64) any {
		if math.IsInf(v, 0) {
			return nil
		}
		return v
	}
	o := object{"verdict": j.Verdict, "probability": j.Probability, "weight": j.Weight, "rate": j.Rate, "low": number(j.Low), "high": number(j.High), "per": per,
		"bound": nil, "since": nil, "until": nil}
	if j.Verdict == leak.None {
		o["bound"] = j.Bound
	}
	if j.Why != "" {
		o["why"] = j.Why
	}
	if j.Until != nil {
		o["former"] = j.Former
	}
	return o
}

// leakJSON returns the object of a row.
func leakJSON(found *growth.Leaks, r *growth.Leak, limit *stackLimit) object {
	j := judgementJSON(&r.Judgement, found.Per)
	j["first"], j["last"], j["stack"], j["values"] = r.First, r.Last, limit.leak(r), changesJSON(r.Points())
	for key, dump := range map[string]int{"since": r.SinceDump, "until": r.UntilDump} {
		if dump >= 0 {
			j[key] = found.Dumps[dump].Name
		}
	}
	if x := found.IfLeak(r); x != nil {
		j["if_leak"] = exhaustionJSON(x)
	}
	if r.Versions != nil {
		j["versions"] = versionsJSON(found.Per, r.Versions)
	}
	if r.Parts != nil {
		var parts []object
		for _, p := range r.Parts {
			parts = append(parts, leakJSON(found, p, limit))
		}
		j["parts"] = parts
	}
	return j
}

// changesJSON returns the values that are not those of the dump before. All values of all dumps and rows are many
// times as much as the log.
func changesJSON(points []profile.Value) []any {
	list, last := []any{}, profile.Value{}
	for i, v := range points {
		if v != last {
			list = append(list, object{"dump": i, "bytes": v.Bytes, "count": v.Count})
		}
		last = v
	}
	return list
}

// versionsJSON returns the objects of firmware versions.
func versionsJSON(per growth.Unit, versions []growth.Version) (list []object) {
	for i := range versions {
		j := judgementJSON(&versions[i].Judgement, per)
		j["name"] = versions[i].Name
		delete(j, "since")
		delete(j, "until")
		list = append(list, j)
	}
	return list
}

// leaksJSON returns the objects of rows.
func leaksJSON(found *growth.Leaks, rows []*growth.Leak, limit *stackLimit) list {
	return func(yield func(any) bool) {
		for _, r := range rows {
			if !yield(leakJSON(found, r, limit)) {
				return
			}
		}
	}
}

// foundJSON returns the fields that leaks and live share.
func foundJSON(found *growth.Leaks, rows []*growth.Leak, limit *stackLimit) object {
	return object{"per": found.Per, "used": found.Used, "rate": found.Rate, "bound": found.Bound, "leaks": leaksJSON(found, rows, limit), "exhaustion": exhaustionJSON(found.Exhaustion)}
}

// exhaustionJSON returns the object of x, which may be nil.
func exhaustionJSON(x *growth.Exhaustion) any {
	if x == nil {
		return nil
	}
	var to any = x.To
	if math.IsInf(x.To, 1) { // the heap may never be full
		to = nil
	}
	return object{"heap": x.Heap, "free": x.Free, "per": x.Per, "in": x.In, "from": x.From, "to": to, "rate": x.Rate, "low": x.Low, "high": x.High}
}

// seriesJSON returns the object of the reports on a heap.
func seriesJSON(s *growth.HeapSeries) any {
	reports := make([]any, len(s.Reports))
	for i, r := range s.Reports {
		j := object{"number": r.Number, "boot": r.Boot, "heap": heapmap.OfHeap(r.Heap)}
		if at, ok := r.Uptime(); ok {
			j["time"] = at.Seconds()
		}
		reports[i] = j
	}
	return object{"name": s.Name, "total": s.Total, "least": s.Least, "reports": reports}
}

// heapJSON returns the object of the trend of a heap.
func heapJSON(t *growth.HeapTrend) any {
	j := judgementJSON(&t.Judgement, t.Per)
	maps.Copy(j, object{"name": t.Name, "reports": t.Reports, "first": heapmap.OfHeap(t.First.Heap), "last": heapmap.OfHeap(t.Last.Heap), "least": t.Least,
		"exhaustion": exhaustionJSON(t.Exhaustion), "unusable": exhaustionJSON(t.Unusable), "fragmenting": t.Fragmenting, "fragmented": t.Fragmented()})
	for key, r := range map[string]*growth.HeapReport{"since": t.Began, "until": t.Stopped} {
		if r == nil {
			continue
		}
		at := object{"file": r.File, "line": r.Line, "boot": r.Boot}
		if time, known := r.Uptime(); known {
			at["time"] = time.Seconds()
		}
		j[key] = at
	}
	if t.Versions != nil {
		j["versions"] = versionsJSON(t.Per, t.Versions)
	}
	return j
}

// writeJSON writes the output of btheap leaks. All rows with evidence are in it.
func (l *leaks) writeJSON(w io.Writer, found *growth.Leaks) error {
	var limit stackLimit
	j := foundJSON(found, found.Rows, &limit)
	j["dumps"] = listJSON(found.Dumps, leakDumpJSON)
	j["boots"], j["missing"], j["varied"] = found.Boots, found.Missing, found.Varied
	j["heaps"] = listJSON(found.Heaps, heapJSON)
	if found.Span > 0 {
		j["span"] = found.Span.Seconds()
	}
	err := writeJSON(w, " ", "leaks", j)
	l.noteCut(&limit)
	return err
}

// writeJSON writes the output of btheap live for the last dump and reports, in a line.
func (st *state) writeJSON(w io.Writer) error {
	j := foundJSON(st.found, st.found.Leaking(), &stackLimit{})
	j["dumps"] = listJSON(st.found.Dumps[max(0, len(st.found.Dumps)-1):], leakDumpJSON)
	j["kept"], j["heaps"], j["alarm"] = len(st.dumps), listJSON(st.found.Heaps, heapJSON), nil
	if st.alarm != "" {
		j["alarm"] = st.alarm
	}
	return writeJSON(w, "", "live", j)
}

// topJSON writes the output of btheap top.
func (s *session) topJSON(w io.Writer, p *profile.Profile, cum, stacks bool) error {
	j := object{"dumps": dumpsJSON(p.Dumps()), "total": p.Total(0), "weight": s.weight}
	if stacks {
		rows := p.Top(s.w, int(s.rows))
		var limit stackLimit
		defer s.noteCut(&limit)
		j["paths"] = listJSON(rows, func(r *profile.Row) any { return object{"stack": limit.stack(*r), "value": r.Value()} })
		j["left"] = p.Len() - len(rows)
	} else {
		r := p.Sites(s.w, cum, int(s.rows))
		j["sites"], j["left"] = append([]profile.SiteRow{}, r.Rows...), r.Sites-len(r.Rows)
	}
	return writeJSON(w, " ", "top", j)
}

// diffJSON writes the output of btheap diff.
func (s *session) diffJSON(w io.Writer, p *profile.Profile, update *growth.Comparisons, changes []change, left int) error {
	var limit stackLimit
	defer s.noteCut(&limit)
	paths := listJSON(changes, func(c *change) any {
		return object{"stack": limit.stack(c.Row), "before": c.before, "after": c.after}
	})
	j := object{"dumps": dumpsJSON(p.Dumps()), "weight": s.weight, "paths": paths, "left": left}
	if update != nil {
		j["leaks"] = listJSON(update.List, func(x *growth.Comparison) any {
			return object{"fate": x.Fate, "why": x.Why, "stack": limit.stack(x.Row), "before": judgementJSON(&x.Before, update.Per), "after": judgementJSON(&x.After, update.Per)}
		})
	}
	return writeJSON(w, " ", "diff", j)
}

// writeJSON writes the output of btheap map.
func (m *heapMap) writeJSON(w io.Writer) error {
	j := object{"moments": listJSON(m.moments, func(x **moment) any { return (*x).sums }), "map": nil, "heaps": listJSON(m.heaps, seriesJSON)}
	if m.heap != nil {
		layout := m.heap.Layout(len(m.heap.Regions), 0)
		var err error
		if layout.Pins, layout.Left, err = m.pinned(); err != nil {
			return err
		}
		j["map"] = struct {
			Number int            `json:"number"`
			Source heapmap.Source `json:"source"` // of the ranges
			heapmap.Layout
		}{m.of.sums.Number, m.heap.Source, layout}
	}
	return writeJSON(w, " ", "map", j)
}
