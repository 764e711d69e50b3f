// Package export writes heap profiles in the formats of other tools.
package export

import (
	"fmt"
	"io"
	"strings"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// Formats lists the formats that [Write] writes.
func Formats() []string { return []string{"pprof", "folded"} }

// Write writes the last dump of a profile in one of the Formats; folded has one weight. The notes
// name the values that the format cannot hold, and their replacements. Both formats repeat the frames
// of each call path, so the lightest paths are added up as one where [profile.Dump.Heaviest] says so.
// Write returns the error of w, or an error if the format is unknown.
func Write(w io.Writer, p *profile.Profile, format string, weight profile.Weight) (notes []string, err error) {
	p, notes = limited(p)
	switch format {
	case "pprof":
		x := newPprof(p)
		return append(notes, x.notes...), x.prof.Write(w)
	case "folded":
		return notes, writeFolded(w, p, weight)
	}
	return nil, fmt.Errorf("format %q, expected %s", format, strings.Join(Formats(), ", "))
}

// last returns the last dump of a profile.
func last(p *profile.Profile) *profile.Dump {
	dumps := p.Dumps()
	if len(dumps) == 0 {
		return &profile.Dump{Ended: true}
	}
	return dumps[len(dumps)-1]
}

// limited returns the profile of the last dump with the call paths that a format writes. The others
// are added up as the path for which [profile.Path.Other] is true, and a note says so.
func limited(p *profile.Profile) (*profile.Profile, []string) {
	most, left := last(p).Heaviest()
	if left == 0 {
		return p, nil
	}
	q, err := profile.New(most)
	if err != nil {
		return p, []string{err.Error()} // there is one dump
	}
	return q.View(p.Current()), []string{limitNote(left)}
}

func limitNote(left int) string {
	return fmt.Sprintf("%s with the least bytes are added up as %q: the format repeats the frames of each, which would be over 32 per frame of the profile",
		printable.Count(left, "call path"), profile.OtherName)
}
