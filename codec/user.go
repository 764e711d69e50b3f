package codec

import (
	"fmt"

	"github.com/lwsbt/lwsbt/internal/crc16"
)

// Tag names a user field. (BT-UF-3)
type Tag uint8

const (
	TagAddress    Tag = 1 // address of the block, as returned to the program
	TagTime       Tag = 2 // microseconds since the boot
	TagThread     Tag = 3 // thread or task, by the number that the system gives it
	TagSequence   Tag = 4 // number of the allocation since the boot (BT-EVT-6)
	TagEvent      Tag = 5 // EventAllocated, EventFreed or EventMoved
	TagOldAddress Tag = 6 // address of the block before realloc; required for EventMoved

	tagEnd   Tag = 0 // ends the list; padding reads as this tag (BT-UF-2)
	tagCheck Tag = 7 // User.Check (BT-UF-4)
)

// tagsUsed is one more than the largest tag above.
const tagsUsed = 7

// Values of TagEvent. (BT-EVT-3, BT-EVT-5)
const (
	EventAllocated = 0
	EventFreed     = 1
	EventMoved     = 2 // realloc resized it; its address may be the same
)

var tagNames = [tagsUsed]string{"end", "address", "time", "thread", "sequence", "event", "old address"}

// String returns the name of the tag. (BT-UF-3)
func (t Tag) String() string {
	if t < tagsUsed {
		return tagNames[t]
	}
	return fmt.Sprintf("tag(%d)", uint8(t))
}

// User holds the user fields of a blob: properties of an allocation other than its stack
// and size. The zero User has no fields. (BT-UF-1)
//
//	┌────────┬─────────┬─────────┬───
//	│ tag    │ count   │ value   │ next tag …, 0 or the end of the bits
//	│  4+1   │  6+1    │ count+1 │
//	└────────┴─────────┴─────────┴───
type User struct {
	present uint16 // bit n: the field of tag n is present
	check   Check
	values  [tagsUsed]uint64
}

// Check is the result of the check of a blob. (BT-UF-4)
type Check uint8

const (
	CheckNone  Check = iota // the blob has none
	CheckRight              // the blob is as it was written
	CheckWrong              // the blob is damaged
)

// Check returns the result of the check of the blob that u was read from.
func (u *User) Check() Check { return u.check }

// AddCheck has writers add the check as the last field. (BT-UF-4)
func (u *User) AddCheck() { u.check = CheckRight }

// checkOf returns the CRC-16/IBM-3740 of the first bits of b, as if the rest of the last byte were 0. (BT-UF-4)
func checkOf(b []byte, bits int) uint64 {
	crc := crc16.Update(crc16.Init, b[:bits/8])
	if rest := bits % 8; rest > 0 {
		crc = crc16.Update(crc, []byte{b[bits/8] & (0xff << (8 - rest))})
	}
	return uint64(crc)
}

// Set sets the field of tag t. It panics if t is not one of the tags above.
func (u *User) Set(t Tag, v uint64) {
	if t == tagEnd || t >= tagsUsed {
		panic("codec: User.Set: unknown tag")
	}
	u.present |= 1 << t
	u.values[t] = v
}

// Get returns the value of tag t, and whether the field is present.
func (u *User) Get(t Tag) (v uint64, ok bool) {
	if t >= tagsUsed || u.present>>t&1 == 0 {
		return 0, false
	}
	return u.values[t], true
}

// Reset removes all fields.
func (u *User) Reset() { *u = User{} }

// write writes the fields in the order of their tags. It writes no end tag, because the
// padding ends the list: it has at least 4 zero bits, or too few bits for a tag. (BT-UF-1,
// BT-UF-2)
func (u *User) write(buf *buffer, w bitWriter) bitWriter {
	for t := tagEnd + 1; t <= tagCheck; t++ {
		v, ok := u.Get(t)
		if t == tagCheck && u.check != CheckNone {
			v, ok = checkOf(buf[:], int(8*w.next+w.n)), true
		}
		if !ok {
			continue
		}
		count := significant(v)
		w = w.put(buf, uint64(t)<<(spillWidth+countBits)|uint64(count&63)<<spillWidth, tagBits+countBits)
		if count > 32 {
			w = w.put(buf, v>>32, count-32)
			v, count = v&(1<<32-1), 32
		}
		w = w.put(buf, v<<spillWidth, count+spillWidth)
	}
	return w
}

// read reads the fields from bit pos of b up to bit end. If a tag occurs twice, the
// first counts; unknown tags are skipped. On an error, u is empty. (BT-UF-2, BT-UF-3)
func (u *User) read(b []byte, pos, end int) error {
	u.Reset()
	for end-pos >= tagBits {
		t := Tag(bitsAt(b, pos, tagWidth))
		if t == tagEnd {
			return nil
		}
		at := pos + tagBits
		need := countBits + 1 + spillWidth
		var count uint
		if end-at >= need {
			count = fullCount(uint(bitsAt(b, at, countWidth)))
			need = int(countBits + count + spillWidth)
		}
		if end-at < need {
			u.Reset()
			e := bitError(pos, fieldUser, -1, reasonTruncated, "user field %d takes %d bits or more, %d are left before the length",
				t, tagBits+need, end-pos)
			e.Clause = "BT-UF-2"
			return e
		}
		v := bitsAt(b, at+countBits, count)
		switch {
		case t < tagsUsed && u.present>>t&1 == 0:
			u.Set(t, v)
		case t == tagCheck && u.check == CheckNone:
			if u.check = CheckWrong; checkOf(b, pos) == v {
				u.check = CheckRight
			}
		}
		pos = at + need
	}
	return nil
}

// decodeUser is decode that also reads the user bits into u. (BT-UF-1, BT-UF-2)
func decodeUser(s *Stack, u *User, blob []byte, word uint) error {
	u.Reset()
	pos, err := decode(s, blob, word)
	if err == nil {
		var short [8]byte
		err = u.read(padded(blob, &short), pos, 8*(len(blob)-lengthBytes))
	}
	if err != nil {
		s.Reset()
	}
	return err
}

// AppendUser appends a copy of blob to dst in which the user fields of u replace the
// user bits, and returns the extended slice. It copies the bits up to the size
// unchanged, including those that a lossy encoder or its compiler chose. On an
// [*Error], it returns dst unchanged. (BT-UF-1)
func AppendUser(dst, blob []byte, u *User) ([]byte, error) {
	var s Stack
	pos, err := decode(&s, blob, 64)
	if err != nil {
		return dst, err
	}
	var (
		short [8]byte
		b     = padded(blob, &short)
		buf   buffer
		w     bitWriter
	)
	const step = 32
	for at := 0; at < pos; at += step {
		n := uint(min(step, pos-at))
		w = w.put(&buf, bitsAt(b, at, n), n)
	}
	n := u.write(&buf, w).bytes()
	dst = append(dst, buf[:n]...)
	n += lengthBytes
	return append(dst, byte(n>>8), byte(n)), nil
}
