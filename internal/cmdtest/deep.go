package cmdtest

import (
	"fmt"
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// DeepLog returns a log of device d1 with dumps of call paths of depth frames, 2 or more, which differ
// in the innermost one. Each dump has the outer frames once, and then each path as their name and its
// own frame: 7 to 12 bytes of log per path.
func DeepLog(t testing.TB, dumps, paths, depth int) []byte {
	t.Helper()
	text := []byte("~h#boot dev=d1 code=8000000+8000000 shift=0\n")
	var w callpath.Writer
	add := func(e callpath.Entry) {
		var err error
		if text, err = w.Append(text, &e); err != nil {
			t.Fatal(err)
		}
	}
	for d := range dumps {
		text = fmt.Appendf(text, "~h#begin %d t=%d\n", d, (d+1)*1_000_000)
		w.Dump = uint32(d)
		var outer callpath.Path
		for n := 0; n < depth-1; n = len(outer.Frames) {
			e := callpath.Entry{Definition: true}
			if n > 0 {
				e.Path = callpath.Path{Base: callpath.Named, Outer: outer.Name()}
			}
			for range min(40, depth-1-n) {
				f := callpath.Frame{Value: uint64(1000 + 3*len(outer.Frames))}
				e.Frames, outer.Frames = append(e.Frames, f), append(outer.Frames, f)
			}
			add(e)
		}
		for i := range paths {
			add(callpath.Entry{Path: callpath.Path{Base: callpath.Named, Outer: outer.Name(),
				Frames: []callpath.Frame{{Value: uint64(200_000 + i)}}}, Live: uint64(1 + d), Bytes: uint64(8 + 8*d)})
		}
		text = fmt.Appendf(w.Flush(text), "~h#end %d\n", d)
	}
	return text
}
