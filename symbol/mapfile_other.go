//go:build !unix

package symbol

import "os"

// mapFile reads a file into memory.
func mapFile(path string) (b []byte, unmap func(), err error) {
	b, err = os.ReadFile(path)
	return b, func() {}, err
}
