package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zlib"

	"github.com/lwsbt/lwsbt/symbol/internal/dwarf"
)

// content returns the content of a section. It is empty if there is no such section, or it has no
// bytes, as in a file whose debug information is in another file.
func (f *File) content(name string) (dwarf.Content, error) {
	for _, s := range f.sections {
		old := strings.HasPrefix(name, ".debug_") && s.Name == ".z"+name[1:]
		if s.Type == elf.SHT_NOBITS || s.Name != name && !old {
			continue
		}
		b := f.bytesAt(s.Offset, s.FileSize)
		if b == nil && s.FileSize != 0 {
			return dwarf.Content{}, fmt.Errorf("section %s: ends at %d, the file has %d bytes", s.Name, s.Offset+s.FileSize, len(f.image))
		}
		switch header := f.Word * 3 / 8; { // bytes of Elf32_Chdr, Elf64_Chdr
		case old && !bytes.HasPrefix(b, []byte("ZLIB")) || old && len(b) < 12:
			return dwarf.Content{}, fmt.Errorf(`section %s: expected "ZLIB" and a size`, s.Name)
		case old:
			return dwarf.Compressed(binary.BigEndian.Uint64(b[4:]), inflate(b[12:])), nil
		case s.Flags&elf.SHF_COMPRESSED == 0:
			return dwarf.Plain(b), nil
		case len(b) > header && elf.CompressionType(f.order.Uint32(b)) == elf.COMPRESS_ZLIB:
			return dwarf.Compressed(s.Size, inflate(b[header:])), nil
		}
		return dwarf.Compressed(s.Size, func() (io.Reader, error) { return s.Open(), nil }), nil
	}
	return dwarf.Content{}, nil
}

func inflate(b []byte) func() (io.Reader, error) {
	return func() (io.Reader, error) { return zlib.NewReader(bytes.NewReader(b)) }
}

// section returns the bytes of a section, nil if there is no such section or it has no bytes.
func (f *File) section(name string) ([]byte, error) {
	c, err := f.content(name)
	if err != nil {
		return nil, err
	}
	b, err := c.All(f.budget)
	if err != nil {
		err = fmt.Errorf("section %s: %w", name, err)
	}
	return b, err
}

// Section returns the contents and the address of a section. The contents are nil if the
// file does not hold them. They are valid until the file is closed, and the caller must not
// change them. The error reports that there is no section of this name or that it is
// malformed.
func (f *File) Section(name string) (data []byte, addr uint64, err error) {
	i := slices.IndexFunc(f.sections, func(s *elf.Section) bool { return s.Name == name })
	if i < 0 {
		return nil, 0, fmt.Errorf("%s: no section %s", f.Path, name)
	}
	if data, err = f.section(name); err != nil {
		err = fmt.Errorf("%s: %w", f.Path, err)
	}
	return data, f.sections[i].Addr, err
}

// stringAt returns the string at an offset of a string section, up to a zero or the end of
// the section. It returns nil if the offset is not in the section.
func stringAt(b []byte, off uint64) []byte {
	if off >= uint64(len(b)) {
		return nil
	}
	b = b[off:]
	if n := bytes.IndexByte(b[:min(len(b), maxName)], 0); n >= 0 {
		return b[:n]
	}
	return b[:min(len(b), maxName)]
}
