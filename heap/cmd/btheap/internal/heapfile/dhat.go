package heapfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/google/pprof/profile"
)

// dhatFile is a file of valgrind --tool=dhat, file version 2 (dhat/dh_main.c).
type dhatFile struct {
	Version int    `json:"dhatFileVersion"`
	Mode    string `json:"mode"`
	Verb    string `json:"verb"`
	// Lifetimes reports whether the file has values at the peak and at the end.
	Lifetimes bool       `json:"bklt"`
	Paths     []dhatPath `json:"pps"`
	Frames    []string   `json:"ftbl"`
}

// dhatPath is a call path: total bytes and blocks, those at the peak, and those at the end.
type dhatPath struct {
	Total      int64 `json:"tb"`
	TotalCount int64 `json:"tbk"`
	Peak       int64 `json:"gb"`
	PeakCount  int64 `json:"gbk"`
	End        int64 `json:"eb"`
	EndCount   int64 `json:"ebk"`
	Frames     []int `json:"fs"` // innermost first
}

func isDHAT(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(head), []byte(`{"dhatFileVersion"`))
}

// readDHAT reads a file as the live blocks at the peak and at the end. A file without
// lifetimes (ad hoc events, or copies) is no heap profile, unless it was written by btheap.
func readDHAT(r io.Reader) ([]Profile, error) {
	data, err := readWhole(r)
	if err != nil {
		return nil, err
	}
	var f dhatFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	switch {
	case f.Version != 2:
		return nil, fmt.Errorf("file version %d, expected 2", f.Version)
	case f.Mode != "heap":
		return nil, fmt.Errorf("mode %q, expected \"heap\"", f.Mode)
	}
	d := &dhatReader{builder: newBuilder(), file: &f, locations: make([]*profile.Location, len(f.Frames))}
	if !f.Lifetimes {
		p, err := d.profile(func(p *dhatPath) (int64, int64) { return p.TotalCount, p.Total })
		return []Profile{{p, ""}}, err
	}
	peak, err := d.profile(func(p *dhatPath) (int64, int64) { return p.PeakCount, p.Peak })
	if err != nil {
		return nil, err
	}
	end, err := d.profile(func(p *dhatPath) (int64, int64) { return p.EndCount, p.End })
	return []Profile{{peak, "peak"}, {end, "end"}}, err
}

type dhatReader struct {
	*builder
	file      *dhatFile
	locations []*profile.Location // by frame, nil if not needed yet
}

// profile returns the profile of one moment.
func (d *dhatReader) profile(value func(*dhatPath) (count, bytes int64)) (*profile.Profile, error) {
	var samples []*profile.Sample
	for i := range d.file.Paths {
		p := &d.file.Paths[i]
		count, bytes := value(p)
		if count < 0 || bytes < 0 {
			return nil, fmt.Errorf("call path %d: %d blocks, %d bytes: a value is negative", i, count, bytes)
		}
		if count == 0 {
			continue
		}
		s := &profile.Sample{Value: []int64{count, bytes}}
		for _, frame := range p.Frames {
			if frame < 0 || frame >= len(d.locations) {
				return nil, fmt.Errorf("call path %d: frame %d, expected 0 to %d", i, frame, len(d.locations)-1)
			}
			if frame > 0 { // 0 is [root]
				s.Location = append(s.Location, d.frame(frame))
			}
		}
		samples = append(samples, s)
	}
	return d.with(samples), nil
}

// A frame is "0x401136: main (a.c:5)", "0x401136: main (in /bin/a)" or "0x401136: ???".
var (
	dhatFrame = regexp.MustCompile(`^0x([0-9A-Fa-f]{1,16}): (.*)$`)
	dhatPlace = regexp.MustCompile(`^(.*) \((?:in (.*)|(.*):(\d+))\)$`)
)

func (d *dhatReader) frame(i int) *profile.Location {
	if d.locations[i] != nil {
		return d.locations[i]
	}
	name, file, module, address, number := d.file.Frames[i], "", "", uint64(0), int64(0)
	if m := dhatFrame.FindStringSubmatch(name); m != nil {
		address, _ = strconv.ParseUint(m[1], 16, 64)
		name = m[2]
	}
	if m := dhatPlace.FindStringSubmatch(name); m != nil {
		name, module, file = m[1], m[2], m[3]
		number, _ = strconv.ParseInt(m[4], 10, 64)
	}
	var lines []profile.Line
	if name != "???" {
		lines = append(lines, d.line(name, file, number))
	}
	d.locations[i] = d.location(address, module, lines...)
	return d.locations[i]
}
