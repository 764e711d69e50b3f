//go:build unix

package symbol

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openNonblock makes opening a FIFO not wait for a writer.
const openNonblock = syscall.O_NONBLOCK

// inode returns the inode number of a file, as in /proc/PID/maps.
func inode(info os.FileInfo) (n uint64, known bool) {
	s, known := info.Sys().(*syscall.Stat_t)
	if known {
		n = uint64(s.Ino)
	}
	return n, known
}

// readImage maps a file into memory.
func readImage(file *os.File) (b []byte, release func(), err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	size := info.Size()
	if size == 0 {
		return nil, nil, errors.New("an empty file")
	}
	if int64(int(size)) != size {
		return nil, nil, fmt.Errorf("%d bytes are more than can be mapped", size)
	}
	b, err = syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot map: %w", err)
	}
	return b, func() { syscall.Munmap(b) }, nil
}
