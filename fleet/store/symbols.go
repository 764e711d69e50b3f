package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"time"
)

// elfs is the prefix of the ELF files of builds.
const elfs = "symbols"

// ErrNoELF is returned for a build without an ELF file in the store.
var ErrNoELF = errors.New("no ELF file of this build")

// PutELF stores the ELF file of a build.
func (s *Store) PutELF(ctx context.Context, build string, data []byte) error {
	return s.put(path.Join(elfs, Escape(build)), data)
}

// ELF returns the ELF file of a build, or ErrNoELF.
func (s *Store) ELF(ctx context.Context, build string) ([]byte, error) {
	data, err := s.Read(path.Join(elfs, Escape(build)))
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
	return write(s, dayPart(now).name(Frames, fmt.Sprintf("%020d-%08x", now.UnixNano(), rand.Uint32())), rows, "")
}
