//go:build unix

package image

import (
	"fmt"
	"os"
	"syscall"
)

// mapSource maps an open file, which it then owns.
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
