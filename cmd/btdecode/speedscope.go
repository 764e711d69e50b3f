package main

import (
	"bufio"
	"encoding/json"
	"slices"
)

// speedscopeSink writes the file format of speedscope.app: one profile of bytes,
// one of allocations.
type speedscopeSink struct {
	*stacks
	w *bufio.Writer
}

type speedscopeFile struct {
	Schema   string              `json:"$schema"`
	Exporter string              `json:"exporter"`
	Name     string              `json:"name"`
	Active   int                 `json:"activeProfileIndex"`
	Shared   speedscopeShared    `json:"shared"`
	Profiles []speedscopeProfile `json:"profiles"`
}

type speedscopeShared struct {
	Frames []speedscopeFrame `json:"frames"`
}

type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

type speedscopeProfile struct {
	Type    string  `json:"type"`
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Start   int64   `json:"startValue"`
	End     int64   `json:"endValue"`
	Samples [][]int `json:"samples"`
	Weights []int64 `json:"weights"`
}

func (s *speedscopeSink) close() error {
	f := speedscopeFile{Schema: "https://www.speedscope.app/file-format-schema.json", Exporter: "btdecode",
		Name: "live allocations", Shared: speedscopeShared{Frames: []speedscopeFrame{}}}
	bytes := speedscopeProfile{Type: "sampled", Name: "bytes", Unit: "bytes", Samples: [][]int{}, Weights: []int64{}}
	count := speedscopeProfile{Type: "sampled", Name: "allocations", Unit: "none", Samples: [][]int{}, Weights: []int64{}}
	index := map[site]int{}
	for _, st := range s.list {
		sample := []int{}
		for _, at := range slices.Backward(s.sites(st)) {
			i, ok := index[at]
			if !ok {
				i = len(f.Shared.Frames)
				index[at] = i
				f.Shared.Frames = append(f.Shared.Frames, speedscopeFrame{at.name(), at.file, at.line})
			}
			sample = append(sample, i)
		}
		bytes.add(sample, st.bytes)
		count.add(sample, st.count)
	}
	f.Profiles = []speedscopeProfile{bytes, count}
	return json.NewEncoder(s.w).Encode(f)
}

func (p *speedscopeProfile) add(sample []int, weight int64) {
	p.Samples, p.Weights, p.End = append(p.Samples, sample), append(p.Weights, weight), p.End+weight
}
