package main

import (
	"io"

	"github.com/lwsbt/lwsbt/report"
)

// The output of map --json, which docs/btheap.schema.json describes.
type (
	mapDocument struct {
		Command string          `json:"command"`
		Version int             `json:"version"`
		Moments []report.Moment `json:"moments"`
		Map     *jsonMap        `json:"map"` // null if no block has an address
	}
	// jsonMap is the heap of one dump.
	jsonMap struct {
		Number int    `json:"number"`
		Source string `json:"source"` // of the ranges: flag, log or blocks
		report.Layout
	}
)

// writeJSON writes the output of btheap map --json.
func (m *heapMap) writeJSON(w io.Writer) error {
	d := mapDocument{Command: "map", Version: schemaVersion, Moments: []report.Moment{}}
	for _, x := range m.moments {
		d.Moments = append(d.Moments, x.sums())
	}
	if shown := m.layouts.shown; shown != nil {
		d.Map = &jsonMap{m.of.number(), m.source(), report.Layout{LeastHole: shown.least, Ranges: shown.ranges(len(shown.regions), 0), Sizes: shown.sizes()}}
		var err error
		if d.Map.Pins, d.Map.Left, err = m.pinned(); err != nil {
			return err
		}
	}
	return writeJSON(w, d, " ")
}
