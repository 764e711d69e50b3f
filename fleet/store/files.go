package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Object is a file of a store.
type Object struct {
	Name     string
	Size     int64 // in bytes
	Modified time.Time
}

func (s *Store) path(name string) string {
	return filepath.Join(s.dir, filepath.FromSlash(name))
}

// put writes a file, durably. A file that is being written has a name that begins with a dot.
func (s *Store) put(name string, data []byte) error {
	if err := s.write(s.path(name), data); err != nil {
		return fmt.Errorf("store: %s: %w", name, err)
	}
	return nil
}

func (s *Store) write(to string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	// In the same directory, so that it can be renamed.
	f, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+".")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := cmp.Or(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	err = os.Rename(f.Name(), to)
	for dir := filepath.Dir(to); err == nil; dir = filepath.Dir(dir) {
		if err = SyncPath(dir); dir == s.dir {
			break
		}
	}
	return err
}

// SyncPath makes a file or the names in a directory durable.
func SyncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Read returns the content of a file of a [Snapshot].
func (s *Store) Read(name string) ([]byte, error) {
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", name, err)
	}
	return data, nil
}

// names returns the files below a prefix, which is empty or ends with '/', sorted by name, but those that are being written.
func (s *Store) names(prefix string) ([]Object, error) {
	list, err := s.files(prefix)
	return slices.DeleteFunc(list, func(o Object) bool { return strings.HasPrefix(path.Base(o.Name), ".") }), err
}

// files returns the files below a prefix, but those that are deleted meanwhile.
func (s *Store) files(prefix string) (list []Object, err error) {
	err = filepath.WalkDir(s.path(prefix), func(p string, e fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil && !e.IsDir() {
			info, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.dir, p)
		list = append(list, Object{filepath.ToSlash(name), info.Size(), info.ModTime()})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", prefix, err)
	}
	slices.SortFunc(list, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// delete deletes a file, if it exists, and the directories that are then empty.
func (s *Store) delete(name string) error {
	path := s.path(name)
	err := os.Remove(path)
	for dir := filepath.Dir(path); err == nil && dir != s.dir && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
