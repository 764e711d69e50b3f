//go:build !unix

package newfile

import "io/fs"

func trusted(fs.FileInfo) bool { return true }
