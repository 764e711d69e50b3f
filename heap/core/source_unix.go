//go:build unix

package core

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// openNonblock makes open return at once for a FIFO without a writer.
const openNonblock = syscall.O_NONBLOCK

// mapSource maps an open file and takes ownership of it.
func mapSource(path string, file *os.File) (*source, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if int64(int(size)) != size {
		return nil, fmt.Errorf("%s: %d bytes, too large for a 32-bit program", path, size)
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot map: %w", path, err)
	}
	return &source{name: path, data: data, file: file, unmap: func() { syscall.Munmap(data) }}, nil
}

// whence returns the values of lseek's whence argument that find data and holes. On macOS,
// they are swapped.
func whence() (data, hole int) {
	if runtime.GOOS == "darwin" {
		return 4, 3
	}
	return 3, 4
}

// nextData returns the first range of a file, at off or later, that is not a hole; ok is
// false if there is none. If the system cannot find holes, nextData returns the rest of the
// file as one range.
func nextData(file *os.File, off int64) (from, to int64, ok bool) {
	seekData, seekHole := whence()
	from, err := syscall.Seek(int(file.Fd()), off, seekData)
	if err == syscall.ENXIO {
		return 0, 0, false
	}
	if err != nil {
		return off, 1<<63 - 1, true
	}
	to, err = syscall.Seek(int(file.Fd()), from, seekHole)
	if err != nil || to <= from {
		to = 1<<63 - 1
	}
	return from, to, true
}
