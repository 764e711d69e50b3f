package symbol

import (
	"debug/elf"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// maxText is the most bytes of code whose hash is computed.
const maxText = 1 << 27

// textHashes returns the hashes that a device with the program of the file may write of its code: bytes that no section
// holds are erased flash, 0xff, or what a program that writes flash fills in, 0. It returns none if the file does not have
// the code. (BT-HEAD-7)
func (f *File) textHashes(code []codec.Range) (list []uint32) {
	for _, fill := range []byte{0, 0xff} {
		if h, ok := f.textHash(code, fill); ok && !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}

func (f *File) textHash(code []codec.Range, fill byte) (h uint32, ok bool) {
	for _, r := range code {
		lo, end := r.Start+-r.Start&3, r.Start+r.Length
		if end < lo || end-lo > maxText {
			return 0, false
		}
		b := slices.Repeat([]byte{fill}, int(end-lo))
		for _, s := range f.sections {
			if s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_ALLOC == 0 || s.Addr >= end || s.Addr+s.FileSize <= lo {
				continue
			}
			data := f.bytesAt(s.Offset, s.FileSize)
			if data == nil {
				return 0, false
			}
			ok = ok || s.Flags&elf.SHF_EXECINSTR != 0
			if s.Addr < lo {
				copy(b, data[lo-s.Addr:])
			} else {
				copy(b[s.Addr-lo:], data)
			}
		}
		for ; len(b) >= 4; b = b[4:] {
			h = (bits.RotateLeft32(h, 5) ^ f.order.Uint32(b)) * 0x9e3779b1
		}
	}
	return h, ok
}

// byText excludes the programs whose code does not have the hash that the boot gives. It reports whether one has it.
func (c *chooser) byText() (found bool) {
	text := strings.ToLower(c.boot.Text)
	if c.boot.Build != "" || text == "" || len(c.boot.Code) == 0 {
		return false
	}
	same := make([]bool, len(c.p.added))
	var others []string
	for i, o := range c.p.added {
		if !o.file.program {
			continue
		}
		list := o.file.textHashes(c.boot.Code)
		same[i] = slices.ContainsFunc(list, func(h uint32) bool { return nearly(strconv.FormatUint(uint64(h), 16), text) })
		found = found || same[i]
		if len(list) > 0 && !same[i] {
			others = append(others, fmt.Sprintf("%s has %x", o.file.Path, list[0]))
		}
	}
	if !found {
		if len(others) > 0 { // a bootloader may have changed a word of it
			c.forced = append(c.forced, fmt.Sprintf("code with the hash %s ran, %s: its names may be wrong", text, strings.Join(others, ", ")))
		}
		return false
	}
	for i, o := range c.p.added {
		if o.file.program && !same[i] && slices.ContainsFunc(c.p.added, func(s *object) bool { return same[c.index(s)] && excludes(s, o) }) {
			c.why[i] = fmt.Sprintf("code with the hash %s ran", text)
		}
	}
	return true
}
