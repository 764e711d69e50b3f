package recording

import "encoding/binary"

// A table entry is the value of a character, shifted to its position in the 24 bits of a
// group of four characters. An invalid or URL-alphabet character also sets a flag.
const (
	sextetURL  = 1 << 24 // '-' or '_': in the URL alphabet only
	sextetNone = 1 << 31 // in neither alphabet
)

// sextets[i] holds the entries for character i of a group of 4.
var sextets = func() (t [4][256]uint32) {
	const std = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range t {
		shift := 18 - 6*i
		for c := range t[i] {
			t[i][c] = sextetNone
		}
		for v, c := range []byte(std) {
			t[i][c] = uint32(v) << shift
		}
		t[i]['-'] = 62<<shift | sextetURL
		t[i]['_'] = 63<<shift | sextetURL
	}
	return t
}()

func inAlphabet(c byte) bool { return sextets[0][c]&sextetNone == 0 }

// decodeRun decodes the base64 characters, of either alphabet, at the start of text into
// blob. blob must have 3 bytes for each 4 of text, and 1 more. decodeRun returns n, the
// bytes written, and taken, the characters read; from an incomplete last group it writes
// the complete bytes. url reports whether a character is in the URL alphabet only. left is
// the number of characters in the last group, 0 to 3, and unused holds the bits of that
// group that belong to no complete byte. (BT-B64-3)
func decodeRun(blob, text []byte) (n, taken int, url bool, left int, unused uint32) {
	var seen uint32
	t0, t1, t2, t3 := &sextets[0], &sextets[1], &sextets[2], &sextets[3]
	rest := text
	for len(rest) >= 8 && len(blob)-n >= 8 {
		r := rest[:8]
		v := t0[r[0]] | t1[r[1]] | t2[r[2]] | t3[r[3]]
		w := t0[r[4]] | t1[r[5]] | t2[r[6]] | t3[r[7]]
		if (v|w)&sextetNone != 0 {
			break
		}
		seen |= v | w
		binary.BigEndian.PutUint64(blob[n:], uint64(v)<<40|uint64(w&(1<<24-1))<<16)
		n += 6
		rest = rest[8:]
	}
	for len(rest) >= 4 {
		v := t0[rest[0]] | t1[rest[1]] | t2[rest[2]] | t3[rest[3]]
		if v&sextetNone != 0 {
			break
		}
		seen |= v
		binary.BigEndian.PutUint32(blob[n:], v<<8)
		n += 3
		rest = rest[4:]
	}
	var group uint32
	for left < 3 && left < len(rest) && inAlphabet(rest[left]) {
		v := sextets[left][rest[left]]
		seen |= v
		group |= v & (1<<24 - 1)
		left++
	}
	taken = len(text) - len(rest) + left
	switch left {
	case 2:
		blob[n] = byte(group >> 16)
		n++
		unused = group & 0xffff
	case 3:
		blob[n], blob[n+1] = byte(group>>16), byte(group>>8)
		n += 2
		unused = group & 0xff
	}
	return n, taken, seen&sextetURL != 0, left, unused
}
