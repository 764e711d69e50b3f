//go:build !unix

package core

import (
	"fmt"
	"io"
	"os"
)

const openNonblock = 0

// maxWhole is the largest file, in bytes, that is read into memory instead of mapped.
const maxWhole = 1 << 30

// mapSource reads an open file and takes ownership of it.
func mapSource(path string, file *os.File) (*source, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxWhole {
		return nil, fmt.Errorf("%s: %d bytes, at most %d can be read on this system", path, info.Size(), maxWhole)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(io.NewSectionReader(file, 0, info.Size()), data); err != nil {
		return nil, err
	}
	return &source{name: path, data: data, file: nil}, nil
}

// nextData reports no holes: this system cannot find them.
func nextData(_ *os.File, off int64) (from, to int64, ok bool) { return off, 1<<63 - 1, true }
