package main

import (
	"encoding/json"
	"io"
	"math"

	heap "github.com/lwsbt/lwsbt/profile"
)

// The output of --json, which docs/btheap.schema.json describes.
type (
	// document is the whole output. Fields that a command does not have are omitted.
	document struct {
		Command string     `json:"command"`
		Version int        `json:"version"` // of the schema; it changes when a field changes its meaning
		Dumps   []jsonDump `json:"dumps"`
		Total   *jsonValue `json:"total,omitempty"` // of the reported dump
		*jsonLeaks
		Sites  []jsonSiteRow `json:"sites,omitempty"`
		Paths  []jsonPath    `json:"paths,omitempty"`
		Slope  *float64      `json:"slope,omitempty"` // of all paths together, per dump
		Every  *bool         `json:"every,omitempty"`
		Left   *int          `json:"left,omitempty"` // rows omitted because of -n
		Weight string        `json:"weight,omitempty"`
	}
	jsonValue struct {
		Bytes uint64 `json:"bytes"`
		Count uint64 `json:"count"`
	}
	jsonDump struct {
		Name     string   `json:"name"`
		File     string   `json:"file"`
		Line     int64    `json:"line,omitempty"`
		Boot     int      `json:"boot"`
		Number   int64    `json:"number"`
		Time     *float64 `json:"time,omitempty"` // seconds since the boot
		Why      string   `json:"why,omitempty"`
		Records  int64    `json:"records"`
		Complete bool     `json:"complete"`
		Missing  *float64 `json:"missing,omitempty"` // fraction of its blocks
		jsonValue
		Used   *bool  `json:"used,omitempty"`
		Reason string `json:"reason,omitempty"` // why the dump was not used
	}
	jsonSite struct {
		Function string `json:"function,omitempty"`
		File     string `json:"file,omitempty"`
		Line     int    `json:"line,omitempty"`
		Module   string `json:"module,omitempty"`
	}
	jsonSiteRow struct {
		jsonSite
		Flat jsonValue `json:"flat"`
		Cum  jsonValue `json:"cum"`
	}
	// jsonPath is a call path of top --stacks, growth or diff.
	jsonPath struct {
		Stack  []jsonSite  `json:"stack"`
		Value  *jsonValue  `json:"value,omitempty"`
		Before *jsonValue  `json:"before,omitempty"`
		After  *jsonValue  `json:"after,omitempty"`
		Slope  *float64    `json:"slope,omitempty"`
		Every  *bool       `json:"every,omitempty"`
		Values []jsonValue `json:"values,omitempty"` // by dump
	}
	jsonLeaks struct {
		Per        string          `json:"per"` // the unit of rates: hour or dump
		Used       int             `json:"used"`
		Boots      int             `json:"boots"`
		Span       *float64        `json:"span,omitempty"` // seconds
		Missing    float64         `json:"missing"`
		Varied     int             `json:"varied"`
		Leaks      []jsonLeak      `json:"leaks"`
		Functions  []jsonLeak      `json:"functions"`
		Exhaustion *jsonExhaustion `json:"exhaustion"`
		Alive      []jsonBlock     `json:"alive,omitempty"`
	}
	jsonLeak struct {
		Verdict   heap.Verdict `json:"verdict"`
		Rate      float64      `json:"rate"` // bytes
		Margin    float64      `json:"margin"`
		Rose      int          `json:"rose"`
		Intervals int          `json:"intervals"`
		Chance    float64      `json:"chance"`
		Z         float64      `json:"z"`
		D         float64      `json:"d"`
		H2        float64      `json:"h2"`
		Gain      float64      `json:"gain"`
		Score     float64      `json:"score"`
		ByBytes   bool         `json:"by_bytes"`
		First     jsonValue    `json:"first"`
		Last      jsonValue    `json:"last"`
		Boots     int          `json:"boots"`
		Stack     []jsonSite   `json:"stack"`
		Values    []jsonValue  `json:"values"`
	}
	jsonExhaustion struct {
		Free   uint64   `json:"free"`
		Rate   float64  `json:"rate"`
		Margin float64  `json:"margin"`
		In     float64  `json:"in"` // hours or dumps
		From   float64  `json:"from"`
		To     *float64 `json:"to"` // null if the heap may never be full
	}
	jsonBlock struct {
		Address uint64     `json:"address"`
		Bytes   uint64     `json:"bytes"`
		Dumps   int        `json:"dumps"`
		Stack   []jsonSite `json:"stack"`
	}
)

// schemaVersion is the version of docs/btheap.schema.json.
const schemaVersion = 1

// newDocument returns the output of a command on dumps.
func newDocument(command string, dumps ...*heap.Dump) *document {
	d := &document{Command: command, Version: schemaVersion, Dumps: []jsonDump{}}
	for _, dump := range dumps {
		d.Dumps = append(d.Dumps, dumpJSON(dump))
	}
	return d
}

// write writes the document, indented by one space.
func (d *document) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(d)
}

func dumpJSON(d *heap.Dump) jsonDump {
	j := jsonDump{Name: d.Name, File: d.File, Line: d.Line, Boot: d.Boot, Number: d.Number, Why: d.Why, Records: d.Records, Complete: d.Complete(), jsonValue: valueJSON(d.Total)}
	if d.Timed {
		t := d.Time.Seconds()
		j.Time = &t
	}
	if m, known := d.Missing(); known {
		j.Missing = &m
	}
	return j
}

func valueJSON(v heap.Value) jsonValue { return jsonValue{v.Bytes, v.Count} }

func valuesJSON(list []heap.Value) []jsonValue {
	out := make([]jsonValue, len(list))
	for i, v := range list {
		out[i] = valueJSON(v)
	}
	return out
}

func siteJSON(s heap.Site) jsonSite { return jsonSite{s.Func, s.File, s.Line, s.Module} }

func stackJSON(list []heap.Site) []jsonSite {
	out := make([]jsonSite, len(list))
	for i, s := range list {
		out[i] = siteJSON(s)
	}
	return out
}

// leaksJSON returns the rows with evidence.
func leaksJSON(found *heap.Leaks) []jsonLeak {
	list := []jsonLeak{}
	for i := range found.Rows {
		r := &found.Rows[i]
		if r.Verdict == heap.NoEvidence {
			continue
		}
		list = append(list, jsonLeak{Verdict: r.Verdict, Rate: r.Rate, Margin: r.Margin, Rose: r.Rose, Intervals: r.Intervals, Chance: r.Chance,
			Z: r.Z, D: r.D, H2: r.H2, Gain: r.Gain, Score: r.Score, ByBytes: r.ByBytes, First: valueJSON(r.First), Last: valueJSON(r.Last),
			Boots: r.Boots, Stack: stackJSON(r.Stack()), Values: valuesJSON(r.Points())})
	}
	return list
}

// exhaustionJSON returns the time until the heap is full, nil if it is not known.
func exhaustionJSON(found *heap.Leaks) *jsonExhaustion {
	x := found.Exhaustion
	if x == nil {
		return nil
	}
	j := &jsonExhaustion{Free: x.Free, Rate: x.Rate, Margin: x.Margin, In: x.In, From: x.From}
	if !math.IsInf(x.To, 1) {
		j.To = &x.To
	}
	return j
}

// document returns the output of btheap leaks --json. All rows with evidence are in it.
func (l *leaks) document(found, functions *heap.Leaks, alive []aliveBlock) *document {
	d := newDocument("leaks", l.dumps...)
	for i := range d.Dumps {
		d.Dumps[i].Used, d.Dumps[i].Reason = &found.Dumps[i].Used, found.Dumps[i].Reason
	}
	j := &jsonLeaks{Per: "dump", Used: found.Used, Boots: found.Boots, Missing: found.Missing, Varied: found.Varied,
		Leaks: leaksJSON(found), Functions: leaksJSON(functions)}
	if found.Timed {
		span := found.Span.Seconds()
		j.Per, j.Span = "hour", &span
	}
	j.Exhaustion = exhaustionJSON(found)
	for _, b := range alive {
		j.Alive = append(j.Alive, jsonBlock{b.addr, b.bytes, b.dumps, stackJSON(b.stack)})
	}
	d.jsonLeaks = j
	return d
}

// topJSON returns the output of btheap top --json.
func (s *session) topJSON(p *heap.Profile, cum, stacks bool, rows int) *document {
	d := newDocument("top", p.Dumps()...)
	total := valueJSON(p.Total(0))
	d.Total, d.Weight = &total, s.weight
	left := 0
	if stacks {
		for _, row := range p.Top(s.w, rows) {
			v := valueJSON(row.Value())
			d.Paths = append(d.Paths, jsonPath{Stack: stackJSON(row.Stack()), Value: &v})
		}
		left = p.Len() - len(d.Paths)
	} else {
		r := p.Sites(s.w, cum, rows)
		for _, row := range r.Rows {
			d.Sites = append(d.Sites, jsonSiteRow{siteJSON(row.Site), valueJSON(row.Flat), valueJSON(row.Cum)})
		}
		left = r.Sites - len(d.Sites)
	}
	d.Left = &left
	return d
}

// diffJSON returns the output of btheap diff --json.
func (s *session) diffJSON(p *heap.Profile, rows int) *document {
	d := newDocument("diff", p.Dumps()...)
	d.Weight = s.weight
	changes := p.Diff(s.w)
	shown := ends(changes, rows)
	for _, c := range shown {
		before, after := valueJSON(c.Before), valueJSON(c.After)
		d.Paths = append(d.Paths, jsonPath{Stack: stackJSON(c.Stack()), Before: &before, After: &after})
	}
	left := len(changes) - len(shown)
	d.Left = &left
	return d
}

// growthJSON returns the output of btheap growth --json.
func (s *session) growthJSON(p *heap.Profile, rows int, every bool) *document {
	d := newDocument("growth", p.Dumps()...)
	d.Weight = s.weight
	t := p.Growth(s.w)
	d.Slope, d.Every = &t.Total.Slope, &t.Total.Every
	left := 0
	for _, g := range t.Rows {
		switch {
		case every && !g.Every:
		case rows > 0 && len(d.Paths) == rows:
			left++
		default:
			d.Paths = append(d.Paths, jsonPath{Stack: stackJSON(g.Stack()), Slope: &g.Slope, Every: &g.Every, Values: valuesJSON(g.Points())})
		}
	}
	d.Left = &left
	return d
}
