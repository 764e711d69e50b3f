package symbol

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lwsbt/lwsbt/symbol/sysroot"
)

// tree is a file tree: the whole machine or a sysroot. Files named by a log or by another
// file are opened only through a tree, and only if they are regular files.
type tree struct{ root string } // the sysroot; "": the whole machine

var errNotRegular = errors.New("not a regular file")

// open opens a regular file. Below a sysroot, it follows links as a program in the sysroot
// would, never out of the sysroot.
func (t tree) open(name string) (*os.File, error) {
	var stat func(string) (fs.FileInfo, error)
	var open func(string, int, fs.FileMode) (*os.File, error)
	if t.root == "" {
		stat, open = os.Stat, os.OpenFile
	} else {
		root, err := os.OpenRoot(t.root)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		if name, err = sysroot.Follow(root, name); err != nil {
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
	if t.root == "" {
		return name
	}
	return filepath.Join(t.root, filepath.Join("/", filepath.FromSlash(name)))
}
