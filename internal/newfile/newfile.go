// Package newfile creates files where other users may write, too: no link that they make, and no
// directory that they exchange, leads elsewhere.
package newfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is a directory that was opened once: files are created in it, whatever its path leads to later.
type Dir struct {
	root *os.Root
	path string
}

// OpenDir opens a directory.
func OpenDir(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{root, path}, nil
}

// Create creates a file that only its owner can read. If there is something with this name, even
// a link to nothing, the error is [fs.ErrExist]. The file has the path of the directory in its name.
func (d *Dir) Create(name string) (*os.File, error) { return d.CreateMode(name, 0o600) }

// CreateMode is Create with other permissions, less the umask.
func (d *Dir) CreateMode(name string, perm fs.FileMode) (*os.File, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	var p *fs.PathError
	if errors.As(err, &p) {
		p.Op, p.Path = "open", filepath.Join(d.path, name)
	}
	return f, err
}

// maxNames is the most names that CreateFree tries.
const maxNames = 10000

// CreateFree creates the file of the first name that is free, and returns that name. name returns
// names for n = 1, 2 and so on.
func (d *Dir) CreateFree(name func(n int) string) (f *os.File, free string, err error) {
	for n := 1; n <= maxNames; n++ {
		if f, err = d.Create(name(n)); !errors.Is(err, fs.ErrExist) {
			return f, name(n), err
		}
	}
	return nil, "", fmt.Errorf("%s and all its numbered names exist", filepath.Join(d.path, name(1)))
}

// Rename replaces the file to by the file from.
func (d *Dir) Rename(from, to string) error { return d.root.Rename(from, to) }

// Remove removes a file.
func (d *Dir) Remove(name string) error { return d.root.Remove(name) }

// Close closes the directory. Its files stay open.
func (d *Dir) Close() error { return d.root.Close() }

// Target returns the directory and the name of the file that a path leads to, through links. A link
// of another user is an error: it may lead to a file that only this user can write. info is nil if
// the file does not exist.
func Target(path string) (d *Dir, name string, info fs.FileInfo, err error) {
	target := path
	for range 40 {
		link, err := os.Lstat(target)
		if errors.Is(err, fs.ErrNotExist) && target == path {
			break
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, "", nil, fmt.Errorf("%s: is a link to %s, which is not there", path, target)
		}
		if err != nil {
			return nil, "", nil, err
		}
		if link.Mode()&fs.ModeSymlink == 0 {
			info = link
			break
		}
		if !trusted(link) {
			return nil, "", nil, fmt.Errorf("%s: is a link that another user made", target)
		}
		to, err := os.Readlink(target)
		if err != nil {
			return nil, "", nil, err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(target), to)
		}
		target = to
	}
	d, err = OpenDir(filepath.Dir(target))
	return d, filepath.Base(target), info, err
}
