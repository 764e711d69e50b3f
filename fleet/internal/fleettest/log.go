// Package fleettest generates logs of devices for tests.
package fleettest

import (
	"fmt"

	"github.com/lwsbt/lwsbt/codec/callpath"
)

// Log returns a log of one boot with dumps of the given number of call paths. Path i
// holds i+1 blocks of 16 bytes each; the first holds one more in each dump.
func Log(device, build string, dumps, paths int) []byte {
	text := fmt.Appendf(nil, "~h#boot w=32 dev=%s build=%s fw=1.0 code=8000000+80000 shift=1\n", device, build)
	w := callpath.Writer{}
	for d := range dumps {
		n, b := Held(d, paths)
		text = fmt.Appendf(text, "~h#begin %d t=%d k=paths n=%d b=%d l=%d\n", d, (d+1)*3_600_000_000, n, b, w.Lines)
		w.Dump = uint32(d)
		for i := range paths {
			e := callpath.Entry{Live: uint64(i + 1)}
			if i == 0 {
				e.Live += uint64(d)
			}
			e.Bytes = 16 * e.Live
			for _, v := range []uint64{0x100, 0x2000 + uint64(i/8)*16, 0x8000 + uint64(i)*32} {
				e.Frames = append(e.Frames, callpath.Frame{Value: v})
			}
			var err error
			if text, err = w.Append(text, &e); err != nil {
				panic(err)
			}
		}
		text = w.Flush(text)
		text = fmt.Appendf(text, "~h#heap size=16777216 free=%d largest=%d min=1000\n", 16777216-b, (16777216-b)/2)
		text = fmt.Appendf(text, "~h#end %d n=%d b=%d l=%d\n", d, n, b, w.Lines)
	}
	return text
}

// Held returns the numbers of blocks and bytes in dump d of a Log.
func Held(d, paths int) (blocks, bytes int64) {
	blocks = int64(paths)*int64(paths+1)/2 + int64(d)
	return blocks, 16 * blocks
}
