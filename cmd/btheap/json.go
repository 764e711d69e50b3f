package main

import (
	"encoding/json"
	"io"
	"math"

	"github.com/lwsbt/lwsbt/profile"
)

// The output of --json, which docs/btheap.schema.json describes.
type (
	// document is the whole output. Fields that a command does not have are omitted.
	document struct {
		Command string         `json:"command"`
		Version int            `json:"version"` // of the schema; it changes when a field changes its meaning
		Dumps   []jsonDump     `json:"dumps"`
		Total   *profile.Value `json:"total,omitempty"` // of the reported dump
		*jsonLeaks
		Sites  []profile.SiteRow `json:"sites,omitempty"`
		Paths  []jsonPath        `json:"paths,omitempty"`
		Slope  *float64          `json:"slope,omitempty"` // of all paths together, per dump
		Every  *bool             `json:"every,omitempty"`
		Left   *int              `json:"left,omitempty"` // rows omitted because of -n
		Weight string            `json:"weight,omitempty"`
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
		profile.Value
		Used   *bool  `json:"used,omitempty"`
		Reason string `json:"reason,omitempty"` // why the dump was not used
	}
	// jsonPath is a call path of top --stacks, growth or diff.
	jsonPath struct {
		Stack  []profile.Site  `json:"stack"`
		Value  *profile.Value  `json:"value,omitempty"`
		Before *profile.Value  `json:"before,omitempty"`
		After  *profile.Value  `json:"after,omitempty"`
		Slope  *float64        `json:"slope,omitempty"`
		Every  *bool           `json:"every,omitempty"`
		Values []profile.Value `json:"values,omitempty"` // by dump
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
		profile.Evidence
		Stack  []profile.Site  `json:"stack"`
		Values []profile.Value `json:"values"`
	}
	jsonExhaustion struct {
		profile.Exhaustion
		To *float64 `json:"to"` // null if the heap may never be full
	}
	jsonBlock struct {
		Address uint64         `json:"address"`
		Bytes   uint64         `json:"bytes"`
		Dumps   int            `json:"dumps"`
		Stack   []profile.Site `json:"stack"`
	}
)

// schemaVersion is the version of docs/btheap.schema.json.
const schemaVersion = 1

// newDocument returns the output of a command on dumps.
func newDocument(command string, dumps ...*profile.Dump) *document {
	d := &document{Command: command, Version: schemaVersion, Dumps: []jsonDump{}}
	for _, dump := range dumps {
		d.Dumps = append(d.Dumps, dumpJSON(dump))
	}
	return d
}

// write writes the document, indented by one space.
func (d *document) write(w io.Writer) error {
	return writeJSON(w, d, " ")
}

// writeJSON writes a value and a line feed, indented by indent.
func writeJSON(w io.Writer, v any, indent string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(v)
}

func dumpJSON(d *profile.Dump) jsonDump {
	j := jsonDump{Name: d.Name, File: d.File, Line: d.Line, Boot: d.Boot, Number: d.Number, Why: d.Why, Records: d.Records, Complete: d.Complete(), Value: d.Total}
	if d.Timed {
		t := d.Time.Seconds()
		j.Time = &t
	}
	if m, known := d.Missing(); known {
		j.Missing = &m
	}
	return j
}

// leaksJSON returns the rows with evidence.
func leaksJSON(rows []profile.Leak) []jsonLeak {
	list := []jsonLeak{}
	for i := range rows {
		r := &rows[i]
		if r.Verdict == profile.NoEvidence {
			continue
		}
		list = append(list, jsonLeak{r.Evidence, r.Stack(), r.Points()})
	}
	return list
}

// exhaustionJSON returns the time until the heap is full, nil if it is not known.
func exhaustionJSON(found *profile.Leaks) *jsonExhaustion {
	x := found.Exhaustion
	if x == nil {
		return nil
	}
	j := &jsonExhaustion{Exhaustion: *x}
	if !math.IsInf(x.To, 1) {
		j.To = &x.To
	}
	return j
}

// document returns the output of btheap leaks --json. All rows with evidence are in it.
func (l *leaks) document(found *profile.Leaks, alive []aliveBlock) *document {
	d := newDocument("leaks", l.dumps...)
	for i := range d.Dumps {
		d.Dumps[i].Used, d.Dumps[i].Reason = &found.Dumps[i].Used, found.Dumps[i].Reason
	}
	j := &jsonLeaks{Per: "dump", Used: found.Used, Boots: found.Boots, Missing: found.Missing, Varied: found.Varied,
		Leaks: leaksJSON(found.Rows), Functions: leaksJSON(found.Functions)}
	if found.Timed {
		span := found.Span.Seconds()
		j.Per, j.Span = "hour", &span
	}
	j.Exhaustion = exhaustionJSON(found)
	for _, b := range alive {
		j.Alive = append(j.Alive, jsonBlock{b.Addr, b.Bytes, b.dumps, b.stack})
	}
	d.jsonLeaks = j
	return d
}

// topJSON returns the output of btheap top --json.
func (s *session) topJSON(p *profile.Profile, cum, stacks bool, rows int) *document {
	d := newDocument("top", p.Dumps()...)
	total := p.Total(0)
	d.Total, d.Weight = &total, s.weight
	left := 0
	if stacks {
		for _, row := range p.Top(s.w, rows) {
			v := row.Value()
			d.Paths = append(d.Paths, jsonPath{Stack: row.Stack(), Value: &v})
		}
		left = p.Len() - len(d.Paths)
	} else {
		r := p.Sites(s.w, cum, rows)
		d.Sites, left = r.Rows, r.Sites-len(r.Rows)
	}
	d.Left = &left
	return d
}

// diffJSON returns the output of btheap diff --json.
func (s *session) diffJSON(p *profile.Profile, rows int) *document {
	d := newDocument("diff", p.Dumps()...)
	d.Weight = s.weight
	changes := p.Diff(s.w)
	shown := ends(changes, rows)
	for _, c := range shown {
		d.Paths = append(d.Paths, jsonPath{Stack: c.Stack(), Before: &c.Before, After: &c.After})
	}
	left := len(changes) - len(shown)
	d.Left = &left
	return d
}

// growthJSON returns the output of btheap growth --json.
func (s *session) growthJSON(p *profile.Profile, rows int, every bool) *document {
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
			d.Paths = append(d.Paths, jsonPath{Stack: g.Stack(), Slope: &g.Slope, Every: &g.Every, Values: g.Points()})
		}
	}
	d.Left = &left
	return d
}
