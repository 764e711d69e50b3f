//go:build !unix

package server

import "os"

// lockFile opens a file. On this system it is not locked.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
