package symbol

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/symbol/internal/dwarf"
)

// section returns the uncompressed bytes of a section. It returns nil if there is no such
// section or it has no bytes, as in a file whose debug information is in another file.
func (f *File) section(name string) ([]byte, error) {
	for _, s := range f.sections {
		if s.Type == elf.SHT_NOBITS {
			continue
		}
		switch {
		case s.Name == name && s.Flags&elf.SHF_COMPRESSED == 0:
			b := f.bytesAt(s.Offset, s.FileSize)
			if b == nil && s.FileSize != 0 {
				return nil, fmt.Errorf("section %s: ends at %d, the file has %d bytes", name,
					s.Offset+s.FileSize, len(f.image))
			}
			return b, nil
		case s.Name == name:
			b, err := f.inflate(s.Open(), s.Size)
			if err != nil {
				return nil, fmt.Errorf("section %s: %w", name, err)
			}
			return b, nil
		case strings.HasPrefix(name, ".debug_") && s.Name == ".z"+name[1:]:
			b, err := f.inflateZdebug(f.bytesAt(s.Offset, s.FileSize))
			if err != nil {
				return nil, fmt.Errorf("section %s: %w", s.Name, err)
			}
			return b, nil
		}
	}
	return nil, nil
}

// inflateZdebug reads a .zdebug section: "ZLIB", its size as 8 bytes, a zlib stream.
func (f *File) inflateZdebug(b []byte) ([]byte, error) {
	if len(b) < 12 || string(b[:4]) != "ZLIB" {
		return nil, errors.New(`expected "ZLIB" and a size`)
	}
	r, err := zlib.NewReader(bytes.NewReader(b[12:]))
	if err != nil {
		return nil, err
	}
	return f.inflate(r, binary.BigEndian.Uint64(b[4:]))
}

// inflate reads size bytes, the uncompressed size in a section's header.
func (f *File) inflate(r io.Reader, size uint64) ([]byte, error) {
	if size > uint64(f.budget.Left()) || !f.budget.Alloc(int64(size)) {
		return nil, fmt.Errorf("%d bytes: %w", size, dwarf.ErrBudget)
	}
	out := make([]byte, size)
	if n, err := io.ReadFull(r, out); errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%d bytes, expected %d", n, size)
	} else if err != nil {
		return nil, err
	}
	return out, nil
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
