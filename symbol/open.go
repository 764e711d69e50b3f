package symbol

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tree is a file tree: the whole machine or a sysroot. Files named by a log or by another
// file are opened only through a tree, and only if they are regular files.
type tree struct{ sysroot string } // "": the whole machine

var errNotRegular = errors.New("not a regular file")

// open opens a regular file. Below a sysroot, it follows links as a program in the sysroot
// would, never out of the sysroot.
func (t tree) open(name string) (*os.File, error) {
	var stat func(string) (fs.FileInfo, error)
	var open func(string, int, fs.FileMode) (*os.File, error)
	if t.sysroot == "" {
		stat, open = os.Stat, os.OpenFile
	} else {
		root, err := os.OpenRoot(t.sysroot)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		if name, err = followLinks(root, name); err != nil {
			return nil, err
		}
		stat, open = root.Stat, root.OpenFile
	}
	// Check the type before opening, because opening a device can have effects. Check it
	// again after opening, because the file may have been replaced.
	info, err := stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: t.path(name), Err: errNotRegular}
	}
	if err != nil {
		return nil, err
	}
	file, err := open(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: t.path(name), Err: errNotRegular}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// path returns the name of a file of the tree on this machine.
func (t tree) path(name string) string {
	if t.sysroot == "" {
		return name
	}
	return filepath.Join(t.sysroot, filepath.Join("/", filepath.FromSlash(name)))
}

// UnderSysroot returns the path on this machine of a file in a sysroot. name is the path in
// the sysroot. Links are followed as a program there would follow them, and never lead out
// of the sysroot.
func UnderSysroot(sysroot, name string) (path string, err error) {
	if sysroot == "" {
		return name, nil
	}
	root, err := os.OpenRoot(sysroot)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if name, err = followLinks(root, name); err != nil {
		return "", err
	}
	return filepath.Join(sysroot, name), nil
}

// maxLinks is the most symbolic links followed for a name, as in Linux.
const maxLinks = 40

// followLinks resolves the symbolic links of a name below root, as after chroot: "/" is root,
// and ".." at root is root.
func followLinks(root *os.Root, name string) (string, error) {
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
