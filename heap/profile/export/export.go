// Package export writes heap profiles in the formats of other tools, and reads those of pprof.
package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// Options are the options of [Write].
type Options struct {
	Weight  profile.Weight // for formats that have one weight: folded
	Program string         // name of the program that writes the file, for speedscope
}

// writer writes the last dump. The notes name the values that the format cannot hold.
type writer func(w *bufio.Writer, p *profile.Profile, o Options) (notes []string, err error)

// writers by the name of their format.
var writers = map[string]writer{
	"pprof": writePprof, "folded": writeFolded, "speedscope": writeSpeedscope,
}

// Formats lists the formats that Write writes.
func Formats() []string {
	return []string{"pprof", "folded", "speedscope"}
}

// Write writes the last dump of a profile in one of the Formats. The notes name the values that the
// format cannot hold, and their replacements. All formats repeat the frames of each call path, so the
// lightest paths are added up as one where [profile.Dump.Heaviest] says so. Write returns the error
// of w, or an error if the format is unknown or cannot hold the dump.
func Write(w io.Writer, p *profile.Profile, format string, o Options) (notes []string, err error) {
	write := writers[format]
	if write == nil {
		return nil, fmt.Errorf("format %q, expected %s", format, strings.Join(Formats(), ", "))
	}
	b := bufio.NewWriterSize(w, 64<<10)
	p, notes = limited(p)
	more, err := write(b, p, o)
	if notes = append(notes, more...); err != nil {
		return notes, err
	}
	return notes, b.Flush()
}

// last returns the last dump of a profile and its index.
func last(p *profile.Profile) (*profile.Dump, int) {
	dumps := p.Dumps()
	if len(dumps) == 0 {
		return &profile.Dump{Ended: true}, -1
	}
	return dumps[len(dumps)-1], len(dumps) - 1
}

// limited returns the profile of the last dump with the call paths that a format writes. The others
// are added up as the path for which [profile.Path.Other] is true, and a note says so.
func limited(p *profile.Profile) (*profile.Profile, []string) {
	d, _ := last(p)
	kept, left := d.Heaviest()
	if left == 0 {
		return p, nil
	}
	b := profile.NewBuilder(0)
	for _, list := range []iter.Seq[profile.Allocation]{d.Allocations(), d.Freed()} {
		for a := range list {
			if !kept(a.Path) {
				a.Path = b.Other()
			}
			b.AddAllocation(a)
		}
	}
	most := b.End(d.DumpInfo)
	most.Records, most.Ended, most.Loss = d.Records, d.Ended, d.Loss
	q, err := profile.New(most)
	if err != nil {
		return p, []string{err.Error()} // there is one dump
	}
	return q.View(p.Current()), []string{limitNote(left)}
}

func limitNote(left int) string {
	return fmt.Sprintf("%s with the least bytes are added up as %q: the format repeats the frames of each, which would be over %d per frame of the profile",
		printable.Count(left, "call path"), profile.OtherName, profile.Repetitions)
}

// rows yields the rows with a value in the last dump, and that value.
func rows(p *profile.Profile) iter.Seq2[profile.Row, profile.Value] {
	return func(yield func(profile.Row, profile.Value) bool) {
		for row := range p.Rows() {
			if v := row.Value(); !v.IsZero() && !yield(row, v) {
				return
			}
		}
	}
}

// safeInteger is the largest integer that JavaScript represents exactly.
const safeInteger = 1<<53 - 1

// inexact returns a note if sums exceed safeInteger.
func inexact(d *profile.Dump, format string) []string {
	if max(d.Total.Bytes, d.Total.Count) <= safeInteger {
		return nil
	}
	return []string{format + ": sums over 2^53-1 are rounded by readers of the format"}
}

// clamp returns v limited to the largest int64. It also reports whether v does not fit.
func clamp(v uint64) (int64, bool) {
	if v > math.MaxInt64 {
		return math.MaxInt64, true
	}
	return int64(v), false
}

// writeJoined writes the elements of a list with a separator between them.
func writeJoined[T any](w *bufio.Writer, separator string, list iter.Seq[T], write func(T)) {
	before := ""
	for v := range list {
		w.WriteString(before)
		write(v)
		before = separator
	}
}

// writeUint writes a number.
func writeUint(w *bufio.Writer, n uint64) { w.Write(strconv.AppendUint(w.AvailableBuffer(), n, 10)) }

// writeJSON writes a value of strings and numbers.
func writeJSON(w *bufio.Writer, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("export: " + err.Error()) // strings and numbers always have one
	}
	w.Write(b)
}
