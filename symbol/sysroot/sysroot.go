// Package sysroot finds files in a sysroot: a directory that holds the files of another
// machine under their paths there.
package sysroot

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Path returns the path on this machine of a file in a sysroot; without a sysroot, it
// returns name. name is the path in the sysroot. Links are followed as a program there would
// follow them, and never lead out of the sysroot.
func Path(sysroot, name string) (path string, err error) {
	if sysroot == "" {
		return name, nil
	}
	root, err := os.OpenRoot(sysroot)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if name, err = Follow(root, name); err != nil {
		return "", err
	}
	return filepath.Join(sysroot, name), nil
}

// maxLinks is the most symbolic links followed for a name, as in Linux.
const maxLinks = 40

// Follow resolves the symbolic links of a name below root, as after chroot: "/" is root,
// and ".." at root is root.
func Follow(root *os.Root, name string) (string, error) {
	rest := strings.Split(filepath.ToSlash(name), "/")
	at, links := ".", 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		info, err := root.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: more than %d symbolic links", name, maxLinks)
		}
		target, err := root.Readlink(next)
		if err != nil {
			return "", err
		}
		target = filepath.ToSlash(target)
		if strings.HasPrefix(target, "/") {
			at = "."
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}
