package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"
)

// file returns a file with n sections that share a name of size bytes. If far, their number and the section of names are in
// section 0.
func file(wide, big, far bool, n, size int) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	id := [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}
	if big {
		order, id[elf.EI_DATA] = binary.BigEndian, byte(elf.ELFDATA2MSB)
	}
	number, names, table := n, 1, 1
	if far {
		number, names, table = 0, int(elf.SHN_XINDEX), n-1
	}
	var b bytes.Buffer
	if wide {
		id[elf.EI_CLASS] = byte(elf.ELFCLASS64)
		binary.Write(&b, order, elf.Header64{Ident: id, Type: 2, Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: 64, Ehsize: 64, Shentsize: 64,
			Shnum: uint16(number), Shstrndx: uint16(names)})
	} else {
		binary.Write(&b, order, elf.Header32{Ident: id, Type: 2, Machine: uint16(elf.EM_MIPS), Version: 1, Shoff: 52, Ehsize: 52, Shentsize: 40,
			Shnum: uint16(number), Shstrndx: uint16(names)})
	}
	text := b.Len() + n*40
	if wide {
		text = b.Len() + n*64
	}
	for i := range n {
		s := elf.Section64{Name: 1, Type: uint32(elf.SHT_NOTE)}
		switch i {
		case 0:
			s = elf.Section64{}
			if far {
				s.Size, s.Link = uint64(n), uint32(table)
			}
		case table:
			s.Type, s.Off, s.Size = uint32(elf.SHT_STRTAB), uint64(text), uint64(size+2)
		}
		if wide {
			binary.Write(&b, order, s)
		} else {
			binary.Write(&b, order, elf.Section32{Name: s.Name, Type: s.Type, Off: uint32(s.Off), Size: uint32(s.Size), Link: s.Link})
		}
	}
	b.WriteByte(0)
	b.WriteString(strings.Repeat("x", size))
	b.WriteByte(0)
	return b.Bytes()
}

// The names that debug/elf would copy are counted before it does, and 300 bytes for each header.
func TestNames(t *testing.T) {
	for i := range 8 {
		wide, big, far := i&1 != 0, i&2 != 0, i&4 != 0
		n, size := 1000, 5000
		if far {
			n, size = int(elf.SHN_LORESERVE)+1, 100
		}
		b, total := file(wide, big, far, n, size), int64((n-1)*size+n*300)
		f, err := Open(bytes.NewReader(b), total)
		if err != nil || len(f.Sections) != n {
			t.Errorf("64 bits %v, big-endian %v, in section 0 %v: %v", wide, big, far, err)
		}
		if _, err := Open(bytes.NewReader(b), total-1); err == nil || !strings.Contains(err.Error(), "the names of its sections have") {
			t.Errorf("64 bits %v, big-endian %v, in section 0 %v: %v, expected too many names", wide, big, far, err)
		}
	}
	for n := range 300 { // no panic, and an error
		if _, err := Open(bytes.NewReader(file(true, false, false, 3, 3)[:n]), 1<<20); n < 64 && err == nil {
			t.Errorf("%d bytes: no error", n)
		}
	}
}
