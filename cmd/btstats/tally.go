package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/stats"
)

// tally counts what the logs hold.
type tally struct {
	bytes, lines  int64
	kinds         [recording.KindIdle + 1]int64 // without cut records
	dumps         int64                         // ~h#begin headers
	lenient       int64                         // records with nonstandard base64
	cut, cutByLws int64
	cutAt         []string // places of the first cut records
	faults        []fault
}

// fault is a reason for which records could not be read.
type fault struct {
	stats.Fault
	err error // of the first record
}

// maxPlaces is the number of places that are kept for a fault.
const maxPlaces = 3

// add counts an item that is not text.
func (t *tally) add(it *recording.Item) {
	if it.Cut != nil {
		t.cut++
		if it.Cut.ByLws {
			t.cutByLws++
		}
		if len(t.cutAt) < maxPlaces {
			t.cutAt = append(t.cutAt, it.Place.String())
		}
		return
	}
	t.kinds[it.Kind]++
	if it.Lenient && it.Kind != recording.KindUnreadable {
		t.lenient++
	}
	if it.Kind == recording.KindHeader && it.Header.Verb == codec.VerbBegin {
		t.dumps++
	}
	if it.Err != nil {
		t.fault(it)
	}
}

// fault counts an unreadable record.
func (t *tally) fault(it *recording.Item) {
	reason := string(it.Reason())
	i := slices.IndexFunc(t.faults, func(f fault) bool { return f.Reason == reason })
	if i < 0 {
		i = len(t.faults)
		t.faults = append(t.faults, fault{stats.Fault{Reason: reason}, it.Err})
	}
	f := &t.faults[i]
	if f.Count++; len(f.First) < maxPlaces {
		f.First = append(f.First, it.Place.String())
	}
}

// log returns the counts for the report.
func (t *tally) log(files []string, device bool) stats.Log {
	l := stats.Log{Files: files, Device: device, Bytes: t.bytes, Lines: t.lines, Blobs: t.kinds[recording.KindBlob],
		Dumps: t.dumps, Decoded: t.kinds[recording.KindDecoded], Lenient: t.lenient,
		Cut: t.cut, CutByLws: t.cutByLws, CutAt: slices.Clone(t.cutAt)}
	for _, f := range t.sorted() {
		f.First = slices.Clone(f.First)
		l.Unreadable = append(l.Unreadable, f.Fault)
	}
	return l
}

// sorted returns the faults, the most frequent first.
func (t *tally) sorted() []fault {
	return slices.SortedFunc(slices.Values(t.faults), func(a, b fault) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
}

// nothing returns the error for logs without a record.
func (t *tally) nothing(files []string, damaged int64) error {
	msg := fmt.Sprintf("%s: no record in %s, %s; looked for ~m# and ~b#",
		strings.Join(files, ", "), cli.Count(t.bytes, "byte"), cli.Count(t.lines, "line"))
	for _, f := range t.sorted() {
		msg += fmt.Sprintf("\n  %d unreadable, %s: first at %s: %v", f.Count, f.Reason, f.First[0], f.err)
	}
	if t.cut > 0 {
		msg += fmt.Sprintf("\n  %d cut, first at %s", t.cut, t.cutAt[0])
	}
	if damaged > 0 {
		msg += fmt.Sprintf("\n  %d damaged, left out", damaged)
	}
	return errors.New(msg)
}
