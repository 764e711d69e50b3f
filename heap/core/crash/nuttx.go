package crash

import (
	"bytes"
	"debug/elf"
	"errors"
)

// readNuttX reads a dump of NuttX (sched/misc/coredump.c): an ELF core file, usually compressed.
func readNuttX(b []byte, d *Dump) error {
	d.Format = "NuttX"
	if isLZF(b) {
		b = d.unLZF(b)
	}
	if !bytes.HasPrefix(b, []byte(elf.ELFMAG)) {
		return errors.New("no ELF core file in it")
	}
	d.about("NuttX dump, a core file of %d bytes", len(b))
	d.Core = b
	return nil
}

// isLZF reports whether b begins with a chunk of LZF.
func isLZF(b []byte) bool { return len(b) >= 7 && b[0] == 'Z' && b[1] == 'V' && b[2] <= 1 }

// maxRatio is the greatest ratio of LZF: three bytes stand for 264.
const maxRatio = 88

// unLZF decompresses chunks: "ZV", type, size; in type 1 also the original size. Sizes have two bytes, the high one first.
// In place of a chunk that cannot be decompressed, it puts zeros.
func (d *Dump) unLZF(all []byte) (out []byte) {
	b := all
	for isLZF(b) {
		at, head := len(all)-len(b), 5+2*int(b[2])
		size := int(b[3])<<8 | int(b[4])
		plain := size
		if b[2] == 1 {
			plain = int(b[5])<<8 | int(b[6])
		}
		chunk := b[head:min(len(b), head+size)]
		if len(chunk) < size {
			d.damaged("the dump ends early: the chunk at byte %d has %d bytes, expected %d", at, len(chunk), size)
		}
		got := chunk
		if b[2] == 1 {
			got = lzf(chunk, plain)
		}
		out = append(out, got...)
		if missing := plain - len(got); missing > 0 {
			d.damaged("the chunk at byte %d has %d bytes decompressed, expected %d", at, len(got), plain)
			if len(chunk) < size || len(out)+missing > maxRatio*len(all) {
				return out
			}
			out = append(out, make([]byte, missing)...)
		}
		b = b[head+len(chunk):]
	}
	if len(b) > 0 {
		d.damaged("byte %d of the dump: no chunk of LZF, %d bytes are left out", len(all)-len(b), len(b))
	}
	return out
}

// lzf decompresses LZF, up to the first error, to at most limit bytes.
//
//	000LLLLL                              L+1 bytes follow
//	LLLOOOOO oooooooo                     L+2 bytes from O<<8 + o + 1 bytes back
//	111OOOOO llllllll oooooooo            l+9 bytes
func lzf(b []byte, limit int) (out []byte) {
	for len(b) > 0 && len(out) < limit {
		c := int(b[0])
		b = b[1:]
		if c < 32 {
			n := min(c+1, len(b), limit-len(out))
			out = append(out, b[:n]...)
			b = b[n:]
			continue
		}
		n := c>>5 + 2
		if n == 9 && len(b) > 0 {
			n += int(b[0])
			b = b[1:]
		}
		if len(b) == 0 {
			return out
		}
		back := len(out) - (c&31)<<8 - int(b[0]) - 1
		b = b[1:]
		if back < 0 {
			return out
		}
		for i := range min(n, limit-len(out)) {
			out = append(out, out[back+i])
		}
	}
	return out
}
