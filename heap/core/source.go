package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"unsafe"

	"github.com/lwsbt/lwsbt/internal/decompress"
)

// source is a file that is mapped into memory.
type source struct {
	name  string
	data  []byte
	file  *os.File // nil if holes of the file cannot be found
	unmap func()
}

func (s *source) close() {
	if s.unmap != nil {
		s.unmap()
	}
	if s.file != nil {
		s.file.Close()
	}
}

// Release gives the pages of the files that were read back to the system, until they are read again: in what follows, others
// are read, or memory is needed.
func (m *Image) Release() {
	for _, s := range m.sources {
		s.release()
	}
}

// releaseAfter is the number of bytes that are read before pages are released.
const releaseAfter = 16 << 20

// Passed counts bytes of the image that were read and are not needed soon: it releases pages now and then, so that a pass over
// all memory does not keep all in memory.
func (m *Image) Passed(bytes uint64) {
	if m.passed += bytes; m.passed > releaseAfter {
		m.passed = 0
		m.Release()
	}
}

// Guard calls f, which uses the image. Files are mapped into memory; if a file becomes
// shorter during f, the missing part cannot be read, and Guard returns an error. It covers
// only the calling goroutine.
func (m *Image) Guard(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		r := recover()
		if r == nil {
			return
		}
		if fault, ok := r.(interface{ Addr() uintptr }); ok {
			for _, s := range m.sources {
				if s.holds(fault.Addr()) {
					err = s.shorter()
					return
				}
			}
		}
		panic(r)
	}()
	err = f()
	for _, s := range m.sources { // holes are not read, so they cause no fault: compare the sizes
		if s.file == nil {
			continue
		}
		if info, err := s.file.Stat(); err == nil && info.Size() < int64(len(s.data)) {
			return s.shorter()
		}
	}
	return err
}

func (s *source) shorter() error { return fmt.Errorf("%s: became shorter while it was in use", s.name) }

// holds reports whether an address of this process is in the mapped file.
func (s *source) holds(addr uintptr) bool {
	return len(s.data) > 0 && addr-uintptr(unsafe.Pointer(unsafe.SliceData(s.data))) < uintptr(len(s.data))
}

// MaxUnpacked is the largest decompressed size of a file, in bytes.
const MaxUnpacked = 64 << 30

// openSource maps a file. It decompresses a compressed file into an unnamed temporary
// file that no other process can open, since an image may hold secrets.
func openSource(path string, m *Image) (*source, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file, which an image must be: it is mapped into memory", path)
	}
	if err == nil && info.Size() == 0 {
		err = fmt.Errorf("%s: empty", path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	var head [6]byte
	n, _ := file.ReadAt(head[:], 0)
	if format := decompress.FormatOf(head[:n]); format != "" {
		packed := file
		file, err = spool(path, packed, format, m)
		packed.Close()
		if err != nil {
			return nil, err
		}
	}
	s, err := mapSource(path, file)
	if err != nil {
		file.Close()
		return nil, err
	}
	m.sources = append(m.sources, s)
	return s, nil
}

// spool decompresses a file into an unnamed temporary file. Blocks of zeros become holes.
func spool(path string, packed io.Reader, format string, m *Image) (*os.File, error) {
	r := decompress.NewReader(format, packed)
	defer r.Close()
	file, err := os.CreateTemp("", "btcore-")
	if err != nil {
		return nil, err
	}
	os.Remove(file.Name()) // ignore the error: some systems cannot remove an open file
	size := int64(0)
	buf := make([]byte, 1<<16)
	for {
		n, err := io.ReadFull(r, buf)
		if size+int64(n) > MaxUnpacked {
			file.Close()
			return nil, fmt.Errorf("%s: more than %d bytes unpacked", path, int64(MaxUnpacked))
		}
		if !allZero(buf[:n]) {
			if _, err := file.WriteAt(buf[:n], size); err != nil {
				file.Close()
				return nil, fmt.Errorf("%s: cannot unpack: %w", path, err)
			}
		}
		size += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF && n < len(buf) && readsEnd(r) {
			break
		}
		if err != nil {
			if size == 0 {
				file.Close()
				return nil, fmt.Errorf("%s: cannot unpack: %w", path, unpackError(err))
			}
			m.notes.add("%s: cannot unpack past byte %d: %v", path, size, unpackError(err))
			break
		}
	}
	if size == 0 {
		file.Close()
		return nil, fmt.Errorf("%s: empty", path)
	}
	if err := file.Truncate(size); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: cannot unpack: %w", path, err)
	}
	return file, nil
}

// unpackError returns an error in decompression in words for users.
func unpackError(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return decompress.Reason(err)
}

// readsEnd reports whether r is at the regular end of the compressed data.
// Decompressors report truncated data by the same error.
func readsEnd(r io.Reader) bool {
	_, err := r.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

func allZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// extents yields the parts of a segment that are not holes of its file, with their
// offsets in the segment. Holes read as zeros.
func (s *Segment) extents() func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		if s.src == nil || s.src.file == nil || len(s.Data) < 1<<20 {
			yield(0, s.Data)
			return
		}
		for off := 0; off < len(s.Data); {
			from, to, ok := nextData(s.src.file, s.off+int64(off))
			if !ok {
				return
			}
			start := max(off, int(from-s.off))
			end := int(min(to-s.off, int64(len(s.Data))))
			if start >= end {
				return
			}
			if !yield(start, s.Data[start:end]) {
				return
			}
			off = end
		}
	}
}
