// Package symbols names the functions of the builds in a store.
package symbols

import (
	"crypto/sha1"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/lwsbt/lwsbt/symbol"
)

// BuildID returns the build ID of an ELF file, in hexadecimal: that of the linker's note,
// or else the SHA-1 of its loaded segments (type PT_LOAD): for each in the order of the
// program headers, p_paddr and p_filesz as 8 bytes each, big-endian, and the content.
// The hash is equal for a file and its stripped copy.
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
		if r := recover(); r != nil { // of debug/elf
			err = fmt.Errorf("%s: malformed ELF file: %v", path, r)
		}
	}()
	e, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	defer e.Close()
	h := sha1.New()
	for _, p := range e.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		var head [16]byte
		binary.BigEndian.PutUint64(head[:], p.Paddr)
		binary.BigEndian.PutUint64(head[8:], p.Filesz)
		h.Write(head[:])
		if _, err := io.Copy(h, p.Open()); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
