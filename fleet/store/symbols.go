package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
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

// PutFrames stores the functions of addresses of a build.
func (s *Store) PutFrames(ctx context.Context, build string, now time.Time, rows []Frame) error {
	if len(rows) == 0 {
		return nil
	}
	return write(ctx, s, Name(Frames, build, now.UTC().Format(time.DateOnly), fmt.Sprintf("%020d", now.UnixNano())), rows)
}

// Builds returns the builds with dumps in the store.
func (s *Store) Builds(ctx context.Context) ([]string, error) {
	parts, err := s.parts(ctx)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, p := range parts {
		list = append(list, unescape(p.build))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// addresses holds the addresses of a build that Unnamed has read.
type addresses struct {
	files map[string]bool // that were read
	named map[string]bool // address: whether it has a frame
}

// maxAddresses is the number of addresses of a build that a store remembers. Builds have fewer, unless
// their addresses change with each boot.
const maxAddresses = 1 << 20

// Unnamed returns the addresses of the call paths of a build for which there are no frames, sorted.
// It reads each file once, and remembers its addresses.
func (s *Store) Unnamed(ctx context.Context, build string) ([]string, error) {
	files, err := s.Snapshot(ctx, "", build)
	if err != nil {
		return nil, err
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	if s.named == nil {
		s.named = map[string]*addresses{}
	}
	a := s.named[build]
	if a == nil || len(a.named) > maxAddresses {
		a = &addresses{map[string]bool{}, map[string]bool{}}
		s.named[build] = a
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
			a.named[r.Address] = true
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
				if !a.named[address] {
					a.named[address] = false
				}
			}
		}
		a.files[name] = true
	}
	maps.DeleteFunc(a.files, func(name string, _ bool) bool {
		return !slices.Contains(files.Frames, name) && !slices.Contains(files.Paths, name)
	})
	var list []string
	for address, named := range a.named {
		if !named {
			list = append(list, address)
		}
	}
	slices.Sort(list)
	return list, nil
}

// unescape is the inverse of Escape.
func unescape(s string) string {
	if t, err := url.PathUnescape(strings.ReplaceAll(s, "+", "%2B")); err == nil {
		return t
	}
	return s
}
