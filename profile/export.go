package profile

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// ExportOptions are the options of [Names.Export].
type ExportOptions struct {
	Weight  Weight // of formats that have one weight: folded
	Program string // what wrote the file, and what it is of
	Command string
	// Events, if not nil, is what dhat writes instead of the dump: what each call
	// path allocated, how long it lived, and what was live at the peak and at the end.
	Events *Events
}

// exporter writes a dump; notes is what the format could not hold.
type exporter func(w *bufio.Writer, n *Names, d *Dump, o ExportOptions) (notes []string, err error)

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

// Export writes a dump in a format of Formats. The notes say what the format cannot
// hold and how it was written instead. The error is one of w, or says that the format
// is unknown or cannot hold the dump.
func (n *Names) Export(w io.Writer, format string, d *Dump, o ExportOptions) (notes []string, err error) {
	e := exporters[format]
	if e == nil {
		return nil, fmt.Errorf("format %q, expected %s", format, strings.Join(Formats(), ", "))
	}
	b := bufio.NewWriterSize(w, 64<<10)
	if notes, err = e(b, n, d, o); err != nil {
		return notes, err
	}
	return notes, b.Flush()
}

// safeInteger is the largest integer that readers in JavaScript hold exactly.
const safeInteger = 1<<53 - 1

// inexact says that sums are over what JavaScript holds; nil if they are not.
func inexact(d *Dump, format string) []string {
	if max(d.Total.Bytes, d.Total.Count) <= safeInteger {
		return nil
	}
	return []string{format + ": sums over 2^53-1 are rounded by readers of the format"}
}

// locationStacks calls yield with each call path that the view shows and its
// locations, innermost first. It stops at the first error.
func (n *Names) locationStacks(d *Dump, yield func(path []LocationID, v Value) error) error {
	var path []LocationID
	var stack []SiteID
	for id, v := range d.Values() {
		var shown bool
		if stack, shown = n.AppendStack(stack[:0], id); !shown {
			continue
		}
		path = n.prof.AppendPath(path[:0], id)
		if err := yield(path, v); err != nil {
			return err
		}
	}
	return nil
}
