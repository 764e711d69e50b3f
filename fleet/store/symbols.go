package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
func (s *Store) PutELF(ctx context.Context, build string, file io.ReadSeeker) error {
	return s.put(ctx, path.Join(elfs, Escape(build)), false, func(w io.Writer) error {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.Copy(w, file)
		return err
	})
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

// Unnamed returns the addresses of the call paths of a build for which there are no frames, sorted.
func (s *Store) Unnamed(ctx context.Context, build string) ([]string, error) {
	files, err := s.Snapshot(ctx, "", build)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, name := range files.Frames {
		rows, err := Read[Frame](ctx, s, name)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			known[r.Address] = true
		}
	}
	var list []string
	for _, name := range files.Paths {
		rows, err := Read[Path](ctx, s, name)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			for _, a := range r.Addresses {
				if !known[a] {
					known[a] = true
					list = append(list, a)
				}
			}
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
