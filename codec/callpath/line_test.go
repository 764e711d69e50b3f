package callpath_test

import (
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// offsets returns frames of code offsets, outermost first.
func offsets(xs ...uint64) []callpath.Frame {
	frames := make([]callpath.Frame, len(xs))
	for i, x := range xs {
		frames[i].Value = x
	}
	return frames
}

// The example of SPEC.md, made by hand.
const (
	example      = "~p#ABFAADQoh7FRNQEgDFCIFBspCgQRtA"
	exampleNames = "~p#ABGACpT2LvCEgDC4FhykDCgQ61F"
)

func exampleEntries() []callpath.Entry {
	return []callpath.Entry{
		{Path: callpath.Path{Frames: offsets(322, 3358, 11656)}, Live: 3, Bytes: 96},
		{Path: callpath.Path{Frames: offsets(322, 3358, 11697, 33041)}, Live: 1, Bytes: 512},
	}
}

func TestExample(t *testing.T) {
	entries := exampleEntries()
	line, err := callpath.AppendLine(nil, callpath.Head{Dump: 1, Seq: 5}, entries)
	if err != nil || string(line) != example {
		t.Errorf("written %q, %v, want %q", line, err, example)
	}
	for i := range entries {
		entries[i].Path = callpath.Path{Base: callpath.Named, Outer: entries[i].Path.Name()}
	}
	if entries[0].Outer != 0xAF2F64E9 || entries[1].Outer != 0xE4CA1178 {
		t.Errorf("names %#x, %#x", entries[0].Outer, entries[1].Outer)
	}
	line, err = callpath.AppendLine(nil, callpath.Head{Dump: 1, Seq: 6}, entries)
	if err != nil || string(line) != exampleNames {
		t.Errorf("written %q, %v, want %q", line, err, exampleNames)
	}
}
