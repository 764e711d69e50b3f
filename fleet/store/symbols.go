package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"time"
)

// elfs is the prefix of the ELF files of builds.
const elfs = "symbols"

// PutELF stores the ELF file of a build.
func (s *Store) PutELF(ctx context.Context, build string, data []byte) error {
	return s.put(path.Join(elfs, Escape(build)), data)
}

// ELF returns the path of the ELF file of a build, which may not exist.
func (s *Store) ELF(build string) string { return s.path(path.Join(elfs, Escape(build))) }

// PutFrames stores the functions of addresses of builds.
func (s *Store) PutFrames(ctx context.Context, now time.Time, rows []Frame) error {
	if len(rows) == 0 {
		return nil
	}
	return write(s, dayPart(now).name(Frames, fmt.Sprintf("%020d-%08x", now.UnixNano(), rand.Uint32())), rows, "")
}
