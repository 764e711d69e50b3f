// Package elffile opens ELF files that nobody vouches for, and reads their notes.
package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
)

// maxName is the most bytes of a section name that are counted.
const maxName = 1 << 20

// Open reads the headers of a file with debug/elf, whose panics it returns as errors. It returns an error if the names of all
// sections have more than limit bytes: debug/elf copies each, and many can share one long name.
func Open(r io.ReaderAt, limit int64) (f *elf.File, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // a fault in a mapped file
			panic(r)
		case runtime.Error, string, error:
			f, err = nil, fmt.Errorf("malformed ELF: debug/elf: %v", r)
		}
	}()
	if n := names(r, limit); n > limit {
		return nil, fmt.Errorf("malformed ELF: the names of its sections have %d bytes, expected at most %d", n, limit)
	}
	f, err = elf.NewFile(r)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file ends early")
	}
	if err != nil {
		return nil, fmt.Errorf("malformed ELF: %w", err)
	}
	return f, nil
}

// names returns the bytes of the names of all sections, and of their headers, up to the first sum above limit.
func names(r io.ReaderAt, limit int64) (total int64) {
	var id [elf.EI_NIDENT]byte
	if n, _ := r.ReadAt(id[:], 0); n < len(id) {
		return 0 // debug/elf returns an error, as for what else cannot be read
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(id[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	read := func(at uint64, v any) bool {
		b := make([]byte, binary.Size(v))
		n, _ := r.ReadAt(b, int64(at&(1<<63-1)))
		_, err := binary.Decode(b[:n], order, v)
		return err == nil
	}
	wide := elf.Class(id[elf.EI_CLASS]) == elf.ELFCLASS64
	var head elf.Header64
	if narrow := (elf.Header32{}); !wide && read(0, &narrow) {
		head.Shoff, head.Shentsize, head.Shnum, head.Shstrndx = uint64(narrow.Shoff), narrow.Shentsize, narrow.Shnum, narrow.Shstrndx
	} else if wide {
		read(0, &head)
	}
	section := func(i uint64) (s elf.Section64, ok bool) {
		at := head.Shoff + i*uint64(head.Shentsize)
		if wide {
			return s, read(at, &s)
		}
		var narrow elf.Section32
		ok = read(at, &narrow)
		return elf.Section64{Name: narrow.Name, Off: uint64(narrow.Off), Size: uint64(narrow.Size), Link: narrow.Link}, ok
	}
	number, table := uint64(head.Shnum), uint64(head.Shstrndx)
	first, _ := section(0) // which has what is too large for the header
	if number == 0 {
		number = first.Size
	}
	if table == uint64(elf.SHN_XINDEX) {
		table = uint64(first.Link)
	}
	strings, ok := section(table)
	if !ok {
		return 0
	}
	text, _ := io.ReadAll(io.NewSectionReader(r, int64(strings.Off&(1<<63-1)), int64(min(strings.Size, 1<<63-1-strings.Off&(1<<63-1)))))
	for i := uint64(0); i < number && total <= limit; i++ {
		s, ok := section(i)
		if !ok {
			break
		}
		const header = 300 // of debug/elf
		total += header
		if uint64(s.Name) < uint64(len(text)) {
			b := text[s.Name:]
			b = b[:min(len(b), maxName)]
			if n := bytes.IndexByte(b, 0); n >= 0 {
				b = b[:n]
			}
			total += int64(len(b))
		}
	}
	return total
}
