package crash

import (
	"bytes"
	"errors"
)

// zephyrFlash returns where the dump begins in an image of Zephyr's flash partition: "CD", version u16, size u32, flags u16,
// sum of the bytes u16, error i32, padding to the write size of the flash.
func zephyrFlash(b []byte) (at int, ok bool) {
	const header, maxPadding = 16, 512
	if len(b) < header || b[0] != 'C' || b[1] != 'D' || b[3] != 0 {
		return 0, false
	}
	at = bytes.Index(b[header:min(len(b), header+maxPadding)], []byte("ZE"))
	return at + header, at >= 0
}

func isZephyrFlash(b []byte) bool {
	_, ok := zephyrFlash(b)
	return ok
}

func readZephyrFlash(b []byte, d *Dump) error {
	d.Format = "Zephyr"
	at, ok := zephyrFlash(b)
	if !ok {
		return errors.New("no header")
	}
	if code := int32(le.Uint32(b[12:])); code != 0 {
		d.damaged("the device reports error %d while it wrote the dump", code)
	}
	size, data := uint64(le.Uint32(b[4:])), b[at:]
	if size > uint64(len(data)) {
		d.damaged("the dump ends early: %d bytes, expected %d", len(data), size)
	} else {
		data = data[:size]
		sum := uint16(0)
		for _, c := range data {
			sum += uint16(c)
		}
		if want := le.Uint16(b[10:]); sum != want {
			d.damaged("checksum 0x%04x, expected 0x%04x: the dump is damaged", sum, want)
		}
	}
	return readZephyr(data, d)
}
