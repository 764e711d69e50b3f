package heapfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/google/pprof/profile"
)

// isPprof reports whether a file may be a profile in protobuf: it begins with at least three
// fields of message Profile, in any order (Go writes field 11 first), or with a sample type.
func isPprof(head []byte) bool { return profileFields(head) >= 3 || beginsWithType(head) }

// isCertainlyPprof reports whether a file begins with at least four fields and is no text, or
// with a sample type.
func isCertainlyPprof(head []byte) bool {
	return profileFields(head) >= 4 && bytes.ContainsFunc(head, func(r rune) bool { return r < '\t' }) || beginsWithType(head)
}

// beginsWithType reports whether a file begins with field 1, a sample type of two numbers.
func beginsWithType(head []byte) bool {
	return len(head) >= 6 && head[0] == 0x0a && head[1] == 4 && head[2] == 0x08 && head[4] == 0x10
}

// profileFields returns the number of whole fields of message Profile at the start of head, 0
// if something else follows them. (profile.proto of github.com/google/pprof)
func profileFields(head []byte) (n int) {
	for len(head) > 0 {
		tag, size := head[0], 1
		field, wire := tag>>3, tag&7
		v, length := binary.Uvarint(head[size:])
		switch size += length; {
		case length < 0 || field == 0 || field > 15:
			return 0
		case length == 0:
			return n // the rest is behind head
		}
		switch {
		case wire == 2 && (field <= 6 || field == 11 || field == 13): // messages, strings, packed comments
			if v > uint64(len(head)-size) {
				return n
			}
			size += int(v)
		case wire == 0 && field >= 7 && field != 11: // numbers
		default:
			return 0
		}
		head = head[size:]
		n++
	}
	return n
}

// Limits for the sum of frames over all samples of a profile. A file has each location once,
// so a byte can represent about 3 frames. The deepest stacks of profilers have 2,048 frames.
const (
	maxSampleFrames = 1 << 12
	minFrames       = 1 << 20 // allowed for a profile of any size
	framesPerByte   = 16
)

// readWhole reads a file of a format that is read at once.
func readWhole(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxWhole+1))
	if len(data) > maxWhole {
		return nil, fmt.Errorf("over %d MB, decompressed: %w", maxWhole>>20, errTooLarge)
	}
	return data, err
}

func readPprof(r io.Reader) (*profile.Profile, error) {
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
	return p, err
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
