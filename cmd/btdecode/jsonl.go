package main

import (
	"bufio"
	"encoding/json"
	"strconv"

	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/symbol"
)

// jsonSink writes an object a record, in the log's order.
type jsonSink struct {
	enc  *json.Encoder
	hide func(fn string) bool
	file func(path string) string
}

func newJSONSink(w *bufio.Writer, o *options) *jsonSink {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &jsonSink{enc: enc, hide: hider(o.foldRE), file: o.file}
}

// jsonRecord is a record; addresses are strings, for they have up to 64 bits.
type jsonRecord struct {
	File     string      `json:"file"`
	Line     int64       `json:"line"`
	Offset   int64       `json:"offset"`
	Size     *uint64     `json:"size,omitempty"`
	SizeLost bool        `json:"size_lost,omitempty"`
	Frames   []jsonFrame `json:"frames,omitempty"`
	CutFrom  int         `json:"cut_from,omitempty"` // frames the record announces
	Error    string      `json:"error,omitempty"`
	Reason   string      `json:"reason,omitempty"`
	Text     string      `json:"text,omitempty"` // of a record that could not be read
}

type jsonFrame struct {
	PC      string       `json:"pc"`
	State   string       `json:"state"` // exact, inferred, lost
	Module  string       `json:"module,omitempty"`
	BuildID string       `json:"build_id,omitempty"`
	Own     string       `json:"own,omitempty"` // the module's own address
	Source  []jsonSource `json:"source,omitempty"`
}

type jsonSource struct {
	Function string `json:"function,omitempty"`
	Linkage  string `json:"linkage_name,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Inlined  bool   `json:"inlined,omitempty"`
}

func hex(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }

func (j *jsonSink) record(rec *dump.Record, fixed symbol.Recovery, places []symbol.FrameAddr) error {
	out := jsonRecord{File: rec.File, Line: rec.Line, Offset: rec.Offset, SizeLost: rec.Stack.Marks.LossySize}
	if !rec.Cut || rec.Sized {
		out.Size = &rec.Stack.Size
	}
	if rec.Cut {
		out.CutFrom, out.Error, out.Reason = rec.Depth, rec.Err.Error(), string(rec.Reason())
	}
	for i, pc := range rec.Stack.PCs {
		f := jsonFrame{PC: hex(pc), State: fixed.State(i).String()}
		if places != nil {
			p := places[i]
			f.Module, f.BuildID = p.Module, p.BuildID
			if p.Module != "" {
				f.Own = hex(p.ObjAddr)
			}
			for _, s := range p.Frames {
				if j.hide(s.Name) {
					continue
				}
				src := jsonSource{Function: s.Name, File: j.file(s.File), Line: s.Line, Inlined: s.Inlined}
				if s.Func != s.Name {
					src.Linkage = s.Func
				}
				f.Source = append(f.Source, src)
			}
			if len(p.Frames) > 0 && len(f.Source) == 0 {
				continue
			}
		}
		out.Frames = append(out.Frames, f)
	}
	return j.enc.Encode(out)
}

func (j *jsonSink) unreadable(rec *dump.Record) error {
	return j.enc.Encode(jsonRecord{File: rec.File, Line: rec.Line, Offset: rec.Offset,
		Error: rec.Err.Error(), Reason: string(rec.Reason()), Text: string(rec.Text)})
}

func (j *jsonSink) close() error { return nil }
