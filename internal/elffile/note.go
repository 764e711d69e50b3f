package elffile

import (
	"encoding/binary"
	"encoding/hex"
)

// Note is an entry of a note section or segment. Name and Desc refer to it.
type Note struct {
	Name []byte // of the owner, with its terminating zero
	Type uint32
	Desc []byte
}

// Next splits the first note off b. ok is false if b does not hold a whole note; the padding
// after the note may be missing.
func Next(b []byte, order binary.ByteOrder) (n Note, rest []byte, ok bool) {
	if len(b) < 12 {
		return Note{}, nil, false
	}
	name, desc := uint64(order.Uint32(b)), uint64(order.Uint32(b[4:]))
	n.Type = order.Uint32(b[8:])
	b = b[12:]
	at := (name + 3) &^ 3
	if at+desc > uint64(len(b)) {
		return Note{}, nil, false
	}
	n.Name, n.Desc = b[:name], b[at:at+desc]
	return n, b[min(at+(desc+3)&^3, uint64(len(b))):], true
}

// maxBuildID is the longest accepted build-id, in bytes. Linkers write 8 to 20, or 32.
const maxBuildID = 64

// BuildID returns the GNU build-id among notes in hexadecimal, "" if there is none.
func BuildID(notes []byte, order binary.ByteOrder) string {
	const gnuBuildID = 3
	for {
		n, rest, ok := Next(notes, order)
		switch {
		case !ok:
			return ""
		case n.Type == gnuBuildID && string(n.Name) == "GNU\x00" && len(n.Desc) > 0 && len(n.Desc) <= maxBuildID:
			return hex.EncodeToString(n.Desc)
		}
		notes = rest
	}
}
