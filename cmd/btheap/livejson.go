package main

import (
	"io"
)

// liveDocument is a line of live --json. docs/btheap.schema.json describes it.
type liveDocument struct {
	Command    string          `json:"command"`
	Version    int             `json:"version"`
	Dumps      []jsonDump      `json:"dumps"` // the last one
	Per        string          `json:"per"`   // the unit of rates: hour or dump
	Kept       int             `json:"kept"`  // dumps in memory, used for the leaks or not
	Used       int             `json:"used"`
	Leaks      []jsonLeak      `json:"leaks"` // leak and probably
	Exhaustion *jsonExhaustion `json:"exhaustion"`
	Alarm      *string         `json:"alarm"` // null if there is none
}

// writeJSON writes the state as one line of JSON.
func (st *state) writeJSON(w io.Writer) error {
	last := len(st.dumps) - 1
	dump := dumpJSON(st.dumps[last])
	dump.Used, dump.Reason = &st.found.Dumps[last].Used, st.found.Dumps[last].Reason
	d := liveDocument{Command: "live", Version: schemaVersion, Dumps: []jsonDump{dump}, Per: "dump", Kept: len(st.dumps), Used: st.found.Used,
		Exhaustion: exhaustionJSON(st.found)}
	d.Leaks = leaksJSON(st.found.Sure())
	if st.found.Timed {
		d.Per = "hour"
	}
	if st.alarm != "" {
		d.Alarm = &st.alarm
	}
	return writeJSON(w, d, "")
}
