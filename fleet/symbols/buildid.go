// Package symbols resolves the function names of the builds in a store.
package symbols

import (
	"crypto/sha1"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/lwsbt/lwsbt/symbol"
)

// BuildID returns the build ID of an ELF file in hexadecimal. It is the build ID in the linker's
// note or, without a note, the SHA-1 of the loaded segments (type PT_LOAD), in the order of the
// program headers. For each segment, the hash includes p_paddr and p_filesz, as 8 bytes each,
// big-endian, and the content, except the ELF header and the program headers, if the segment
// begins with them. The hash is equal for a file and its stripped copy.
func BuildID(path string) (id string, err error) {
	f, err := symbol.Open(path, nil)
	if err != nil {
		return "", err
	}
	id = f.BuildID
	f.Close()
	if id != "" {
		return id, nil
	}
	defer func() {
		if r := recover(); r != nil { // a panic of debug/elf
			err = fmt.Errorf("%s: malformed ELF file: %v", path, r)
		}
	}()
	e, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	defer e.Close()
	headers, err := endOfHeaders(path, e)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	h := sha1.New()
	for _, p := range e.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		var head [16]byte
		binary.BigEndian.PutUint64(head[:], p.Paddr)
		binary.BigEndian.PutUint64(head[8:], p.Filesz)
		h.Write(head[:])
		skip := uint64(0)
		if p.Off < headers {
			skip = min(headers-p.Off, p.Filesz)
		}
		if _, err := io.Copy(h, io.NewSectionReader(p, int64(skip), int64(p.Filesz-skip))); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// endOfHeaders returns the offset in the file at which the ELF header and the program
// headers end.
func endOfHeaders(path string, e *elf.File) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var b [64]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return 0, err
	}
	if e.Class == elf.ELFCLASS32 {
		const size = 32 // of a program header
		return max(52, uint64(e.ByteOrder.Uint32(b[28:]))+size*uint64(len(e.Progs))), nil
	}
	const size = 56
	return max(64, e.ByteOrder.Uint64(b[32:])+size*uint64(len(e.Progs))), nil
}
