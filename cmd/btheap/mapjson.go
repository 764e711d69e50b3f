package main

import (
	"io"

	"github.com/lwsbt/lwsbt/profile/heapmap"
)

// The output of map --json, which docs/btheap.schema.json describes.
type (
	mapDocument struct {
		Command string           `json:"command"`
		Version int              `json:"version"`
		Moments []heapmap.Moment `json:"moments"`
		Map     *jsonMap         `json:"map"` // null if no block has an address
	}
	// jsonMap is the heap of one dump.
	jsonMap struct {
		Number int            `json:"number"`
		Source heapmap.Source `json:"source"` // of the ranges
		heapmap.Layout
	}
)

// writeJSON writes the output of btheap map --json.
func (m *heapMap) writeJSON(w io.Writer) error {
	d := mapDocument{Command: "map", Version: schemaVersion, Moments: []heapmap.Moment{}}
	for _, x := range m.moments {
		d.Moments = append(d.Moments, x.sums)
	}
	if m.heap != nil {
		d.Map = &jsonMap{m.of.sums.Number, m.heap.Source, m.heap.Layout(len(m.heap.Regions), 0)}
		var err error
		if d.Map.Pins, d.Map.Left, err = m.pinned(); err != nil {
			return err
		}
	}
	return writeJSON(w, d, " ")
}
