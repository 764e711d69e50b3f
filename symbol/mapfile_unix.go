//go:build unix

package symbol

import (
	"fmt"
	"os"
	"syscall"
)

// mapFile maps a file into memory: what is never read of it costs nothing.
func mapFile(path string) (b []byte, unmap func(), err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	size := info.Size()
	if !info.Mode().IsRegular() || size == 0 || int64(int(size)) != size {
		return nil, nil, fmt.Errorf("%s: not a file with something in it", path)
	}
	b, err = syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: cannot map: %w", path, err)
	}
	return b, func() { syscall.Munmap(b) }, nil
}
