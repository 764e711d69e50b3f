package profile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
)

// ExportOptions are the options of [Profile.Export].
type ExportOptions struct {
	Weight  Weight // for formats that have one weight: folded
	Program string // name of the program that writes the file, for speedscope
	Command string // subject of the profile, for dhat
	// Replay, if not nil, is written by dhat instead of the last dump: the total and the
	// lifetimes of each path, and the values live at the peak and at the end.
	Replay *Replay
}

// exporter writes the last dump. The notes name the values that the format cannot hold.
type exporter func(w *bufio.Writer, p *Profile, o ExportOptions) (notes []string, err error)

// exporters by the name of their format.
var exporters = map[string]exporter{
	"pprof": writePprof, "folded": writeFolded, "speedscope": writeSpeedscope, "dhat": writeDHAT, "csv": writeCSV,
}

// Formats lists the formats that Export writes.
func Formats() []string {
	return []string{"pprof", "folded", "speedscope", "dhat", "csv"}
}

// Export writes the last dump in one of the Formats. The notes name the values that the
// format cannot hold, and their replacements. All formats repeat the frames of each call path: beyond
// 2^23 frames, and 32 for each frame of the profile, the lightest paths are added up as one. Export returns the error of w, or an error if
// the format is unknown or cannot hold the dump.
func (p *Profile) Export(w io.Writer, format string, o ExportOptions) (notes []string, err error) {
	e := exporters[format]
	if e == nil {
		return nil, fmt.Errorf("format %q, expected %s", format, strings.Join(Formats(), ", "))
	}
	b := bufio.NewWriterSize(w, 64<<10)
	if o.Replay == nil {
		p, notes = p.limited()
	}
	more, err := e(b, p, o)
	if notes = append(notes, more...); err != nil {
		return notes, err
	}
	return notes, b.Flush()
}

// safeInteger is the largest integer that JavaScript represents exactly.
const safeInteger = 1<<53 - 1

// inexact returns a note if sums exceed safeInteger.
func inexact(d *Dump, format string) []string {
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
		panic("profile: " + err.Error()) // strings and numbers always have one
	}
	w.Write(b)
}
