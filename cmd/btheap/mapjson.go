package main

import (
	"encoding/json"
	"io"

	"github.com/lwsbt/lwsbt/codec"
)

// The output of map --json, which docs/btheap.schema.json describes.
type (
	mapDocument struct {
		Command string       `json:"command"`
		Version int          `json:"version"`
		Moments []jsonMoment `json:"moments"`
		Map     *jsonMap     `json:"map"` // null if no block has an address
	}
	jsonMoment struct {
		Number    int            `json:"number"`
		Boot      int            `json:"boot"`
		Time      *float64       `json:"time,omitempty"` // seconds since the boot
		Blocks    *jsonSpace     `json:"blocks"`         // null if the blocks have no addresses
		Allocator *jsonAllocator `json:"allocator"`      // null without ~h#heap
	}
	// jsonSpace is the memory that the blocks of a dump use and leave free.
	jsonSpace struct {
		Size          uint64  `json:"size"`
		Used          uint64  `json:"used"`
		Count         int     `json:"count"`
		Free          uint64  `json:"free"`
		Holes         int     `json:"holes"`
		Largest       uint64  `json:"largest"`
		Fragmentation float64 `json:"fragmentation"`
		Outside       int     `json:"outside"`
		Overlap       int     `json:"overlap"`
	}
	jsonAllocator struct {
		Size          uint64  `json:"size"`
		Free          uint64  `json:"free"`
		Largest       uint64  `json:"largest"`
		Min           uint64  `json:"min"`
		Fragmentation float64 `json:"fragmentation"`
	}
	// jsonMap is the heap of one dump.
	jsonMap struct {
		Number    int          `json:"number"`
		Source    string       `json:"source"` // of the ranges: flag, log or blocks
		Ranges    []jsonRange  `json:"ranges"`
		LeastHole uint64       `json:"least_hole"`
		Sizes     []jsonSizes  `json:"sizes"`
		Pins      []jsonPinned `json:"pins"`
		Left      int          `json:"left"` // pins omitted because of -n
	}
	jsonRange struct {
		Start  uint64 `json:"start"`
		Length uint64 `json:"length"`
	}
	// jsonSizes is the holes and blocks of min to max bytes.
	jsonSizes struct {
		Min        uint64 `json:"min"`
		Max        uint64 `json:"max"`
		Holes      int    `json:"holes"`
		HoleBytes  uint64 `json:"hole_bytes"`
		Blocks     int    `json:"blocks"`
		BlockBytes uint64 `json:"block_bytes"`
	}
	// jsonPinned is a call path whose blocks keep holes apart.
	jsonPinned struct {
		Kept    uint64     `json:"kept"`
		Count   int        `json:"count"`
		Bytes   uint64     `json:"bytes"`
		Address uint64     `json:"address"`
		Stack   []jsonSite `json:"stack"`
	}
)

// writeJSON writes the output of btheap map --json.
func (m *heapMap) writeJSON(w io.Writer) error {
	d := mapDocument{Command: "map", Version: schemaVersion, Moments: []jsonMoment{}}
	for _, x := range m.moments {
		d.Moments = append(d.Moments, momentJSON(x))
	}
	if m.layouts.shown != nil {
		var err error
		if d.Map, err = m.mapJSON(); err != nil {
			return err
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(d)
}

func momentJSON(x *moment) jsonMoment {
	j := jsonMoment{Number: x.number, Boot: x.boot}
	if x.timed {
		t := x.time.Seconds()
		j.Time = &t
	}
	if x.known {
		j.Blocks = &jsonSpace{x.m.size, x.m.used, x.m.count, x.m.free, x.holes, x.m.largest, fragmentation(x.m.free, x.m.largest), x.m.outside, x.m.overlap}
	}
	if h := x.heap; h.Known {
		j.Allocator = &jsonAllocator{h.Size, h.Free, h.Largest, h.Min, fragmentation(h.Free, h.Largest)}
	}
	return j
}

// mapJSON returns the heap of the dump that is reported on.
func (m *heapMap) mapJSON() (*jsonMap, error) {
	j := &jsonMap{Number: m.of.number, Source: m.source(), LeastHole: m.layouts.shown.least, Ranges: []jsonRange{}, Sizes: []jsonSizes{}, Pins: []jsonPinned{}}
	for _, r := range m.layouts.shown.regions {
		j.Ranges = append(j.Ranges, rangeJSON(r))
	}
	for i, x := range m.layouts.shown.histogram() {
		if low := uint64(1) << i; x.holes+x.blocks > 0 {
			j.Sizes = append(j.Sizes, jsonSizes{low, low + (low - 1), x.holes, x.holeBytes, x.blocks, x.blockBytes})
		}
	}
	p, pins, err := m.pinned()
	if err != nil {
		return nil, err
	}
	for i, x := range pins {
		if m.rows > 0 && i == m.rows {
			j.Left = len(pins) - i
			break
		}
		sites, _ := p.Stack(x.path)
		j.Pins = append(j.Pins, jsonPinned{x.kept, x.blocks, x.bytes, x.at, stackJSON(sites)})
	}
	return j, nil
}

func rangeJSON(r codec.Range) jsonRange { return jsonRange{r.Start, r.Length} }
