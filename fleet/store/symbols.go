package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"
)

// elfs is the prefix of the ELF files of builds.
const elfs = "symbols"

// ErrNoELF is returned for a build without an ELF file in the store.
var ErrNoELF = errors.New("no ELF file of this build")

// PutELF stores the ELF file of a build.
func (s *Store) PutELF(ctx context.Context, build string, data []byte) error {
	return s.put(ctx, path.Join(elfs, Escape(build)), false, data)
}

// ELF returns the ELF file of a build, or ErrNoELF.
func (s *Store) ELF(ctx context.Context, build string) ([]byte, error) {
	data, err := s.bucket.read(ctx, path.Join(elfs, Escape(build)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoELF
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return data, nil
}

// PutFrames stores the functions of addresses of builds.
func (s *Store) PutFrames(ctx context.Context, now time.Time, rows []Frame) error {
	if len(rows) == 0 {
		return nil
	}
	err := ErrExists
	for ; errors.Is(err, ErrExists); now = now.Add(1) {
		err = writeNew(ctx, s, dayPart(now).name(Frames, fmt.Sprintf("%020d", now.UnixNano()), ".parquet"), true, rows)
	}
	return err
}

// addresses holds the addresses that Unnamed has read.
type addresses struct {
	files map[string]bool    // that were read
	named map[[2]string]bool // build and address: whether it has a frame
}

// maxAddresses is the number of addresses that a store remembers. Builds have fewer, unless
// their addresses change with each boot.
const maxAddresses = 1 << 21

// Unnamed returns, for each build, the addresses of its call paths for which there are no frames, sorted.
// It reads each file once, and remembers its addresses.
func (s *Store) Unnamed(ctx context.Context) (map[string][]string, error) {
	files, err := s.Snapshot(ctx, "")
	if err != nil {
		return nil, err
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	a := &s.named
	if a.files == nil || len(a.named) > maxAddresses {
		*a = addresses{map[string]bool{}, map[[2]string]bool{}}
	}
	for _, name := range files.Frames {
		if a.files[name] {
			continue
		}
		rows, err := Read[Frame](ctx, s, name)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			a.named[[2]string{r.Build, r.Address}] = true
		}
		a.files[name] = true
	}
	for _, name := range files.Paths {
		if a.files[name] {
			continue
		}
		rows, err := Read[Path](ctx, s, name)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			for _, address := range r.Addresses {
				if k := [2]string{r.Build, address}; !a.named[k] {
					a.named[k] = false
				}
			}
		}
		a.files[name] = true
	}
	maps.DeleteFunc(a.files, func(name string, _ bool) bool {
		return !slices.Contains(files.Frames, name) && !slices.Contains(files.Paths, name)
	})
	list := map[string][]string{}
	for k, named := range a.named {
		if !named {
			list[k[0]] = append(list[k[0]], k[1])
		}
	}
	for _, l := range list {
		slices.Sort(l)
	}
	return list, nil
}
