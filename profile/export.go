package profile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
)

// ExportOptions are the options of [Profile.Export].
type ExportOptions struct {
	Weight  Weight // of formats that have one weight: folded
	Program string // what wrote the file, and what it is of
	Command string
	// Replay, if not nil, is what dhat writes instead of the last dump: what each call
	// path allocated, how long it lived, and what was live at the peak and at the end.
	Replay *Replay
}

// exporter writes the last dump; notes say what the format cannot hold.
type exporter func(w *bufio.Writer, p *Profile, o ExportOptions) (notes []string, err error)

// exporters by the name of their format.
var exporters = map[string]exporter{
	"pprof": writePprof, "folded": writeFolded, "speedscope": writeSpeedscope, "dhat": writeDHAT,
	"heaptrack": writeHeaptrack, "jsonl": writeJSONL, "csv": writeCSV,
}

// Formats lists the formats that Export writes.
func Formats() []string {
	return []string{"pprof", "folded", "speedscope", "dhat", "heaptrack", "jsonl", "csv"}
}

// Binary reports whether a format is binary, so not for a terminal.
func Binary(format string) bool { return format == "pprof" }

// Export writes the last dump in a format of Formats. The notes say what the format
// cannot hold and how it was written instead. The error is one of w, or says that the
// format is unknown or cannot hold the dump.
func (p *Profile) Export(w io.Writer, format string, o ExportOptions) (notes []string, err error) {
	e := exporters[format]
	if e == nil {
		return nil, fmt.Errorf("format %q, expected %s", format, strings.Join(Formats(), ", "))
	}
	b := bufio.NewWriterSize(w, 64<<10)
	if notes, err = e(b, p, o); err != nil {
		return notes, err
	}
	return notes, b.Flush()
}

// safeInteger is the largest integer that readers in JavaScript hold exactly.
const safeInteger = 1<<53 - 1

// inexact returns a note if sums are over what JavaScript holds.
func inexact(d *Dump, format string) []string {
	if max(d.Total.Bytes, d.Total.Count) <= safeInteger {
		return nil
	}
	return []string{format + ": sums over 2^53-1 are rounded by readers of the format"}
}

// clamp returns v as int64 for formats that have no more, and reports whether it does
// not fit.
func clamp(v uint64) (int64, bool) {
	if v > math.MaxInt64 {
		return math.MaxInt64, true
	}
	return int64(v), false
}

// writeJSON writes a value of strings and numbers.
func writeJSON(w *bufio.Writer, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("profile: " + err.Error()) // strings and numbers always have one
	}
	w.Write(b)
}

// lastPaths returns the call paths of the last dump that the view shows, and what each
// holds.
func (p *Profile) lastPaths() iter.Seq2[uint32, Value] {
	return func(yield func(uint32, Value) bool) {
		names := p.names()
		d, _ := p.last()
		var buf []uint32
		for i, id := range d.ids {
			if _, shown := names.stack(&buf, id); shown && !yield(id, d.values[i]) {
				return
			}
		}
	}
}
