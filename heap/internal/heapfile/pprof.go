package heapfile

import (
	"bytes"
	"fmt"
	"io"

	"github.com/google/pprof/profile"
)

// isPprof reports whether a file may be a profile in protobuf: it begins with field 1, a
// message that begins with its own field 1.
func isPprof(head []byte) bool {
	return len(head) >= 8 && head[0] == 0x0a && head[2] == 0x08 && !bytes.Contains(head, []byte("~m#"))
}

// isCertainlyPprof reports whether field 2 follows in the inner message.
func isCertainlyPprof(head []byte) bool { return head[1] == 4 && head[4] == 0x10 }

// Limits for the sum of frames over all samples of a profile. A file has each location once,
// so a byte can represent about 3 frames. The deepest stacks of profilers have 2,048 frames.
const (
	maxSampleFrames = 1 << 12
	minFrames       = 1 << 20 // allowed for a profile of any size
	framesPerByte   = 16
)

func readPprof(r io.Reader) ([]Profile, error) {
	data, err := readWhole(r)
	if err != nil {
		return nil, err
	}
	p, err := profile.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err == nil {
		err = checkFrames(p, len(data))
	}
	return []Profile{{Profile: p}}, err
}

// checkFrames returns an error for a profile of size bytes with too many frames.
func checkFrames(p *profile.Profile, size int) error {
	total, most := 0, minFrames+framesPerByte*size
	for i, s := range p.Sample {
		n := 0
		for _, l := range s.Location {
			if n += max(1, len(l.Line)); n > maxSampleFrames {
				return fmt.Errorf("sample %d has over %d frames", i+1, maxSampleFrames)
			}
		}
		if total += n; total > most {
			return fmt.Errorf("over %d frames in %d bytes: too many", most, size)
		}
	}
	return nil
}
