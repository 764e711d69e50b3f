//go:build !unix

package symbol

import (
	"io"
	"os"
)

const openNonblock = 0

// inode returns the inode number of a file, which is not known on this system.
func inode(os.FileInfo) (n uint64, known bool) { return 0, false }

// readImage reads a file into memory.
func readImage(file *os.File) (b []byte, release func(), err error) {
	b, err = io.ReadAll(file)
	return b, func() {}, err
}
