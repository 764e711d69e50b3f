package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/printable"
	heap "github.com/lwsbt/lwsbt/profile"
)

// profiles reads the arguments as profiles of pprof. It returns nil if they are logs.
func (s *session) profiles() ([]*profile.Profile, error) {
	var list []*profile.Profile
	for i, path := range s.files {
		p, err := readProfile(path)
		if err != nil {
			return nil, err
		}
		if p == nil && len(list) > 0 || p != nil && len(list) < i {
			return nil, fmt.Errorf("%s: logs and profiles of pprof cannot be read together", path)
		}
		if p != nil {
			list = append(list, p)
		}
	}
	if list == nil {
		return nil, nil
	}
	for _, name := range []string{"exe", "maps", "sysroot", "debug-dir", "adjust", "machine", "split", "only", "follow", "bare", "strict", "at"} {
		if s.c.Flags().Changed(name) {
			return nil, cli.BadArgsf("--%s has no effect here: it is for logs, and %s is a profile of pprof", name, s.files[0])
		}
	}
	return list, nil
}

// readProfiles takes each profile as a dump.
func (s *session) readProfiles(list []*profile.Profile) error {
	b := heap.NewBuilder(s.maxPaths)
	for i, p := range list {
		d, err := heap.FromPprof(b, p, s.files[i])
		if err != nil {
			return err
		}
		d.Index, d.Number = i, int64(i+1)
		s.dumps = append(s.dumps, d)
	}
	from, to := s.Selected()
	n := len(s.dumps)
	switch {
	case from < 0:
		from, to = n, n
	case from == 0:
		from, to = 1, n
	}
	if to > n {
		return cli.Usagef("--dump %s: there are %d profiles", s.Dump, n)
	}
	s.dumps = s.dumps[from-1 : to]
	return nil
}

// maxProfile is the largest size of a decompressed profile of pprof, in bytes.
const maxProfile = 128 << 20

// Frames that a profile of pprof may have, counted for each sample anew: locations are
// written once, however often they are called. The deepest stacks that profilers record
// have 2,048; a byte stands for some 3 frames.
const (
	maxSampleFrames = 1 << 12
	minFrames       = 1 << 20 // whatever its size
	framesPerByte   = 16
)

// checkFrames returns an error for a profile of size bytes with too many frames.
func checkFrames(p *profile.Profile, size int) error {
	total, most := 0, minFrames+framesPerByte*size
	for i, s := range p.Sample {
		n := 0
		for _, l := range s.Location {
			if n += max(1, len(l.Line)); n > maxSampleFrames {
				return fmt.Errorf("sample %d has over %d frames", i+1, maxSampleFrames)
			}
		}
		if total += n; total > most {
			return fmt.Errorf("over %d frames in %d bytes: too many", most, size)
		}
	}
	return nil
}

// readProfile reads a file as a profile of pprof. It returns nil if the file is not a
// profile. A decompressed profile begins with field 1, a message that begins with its
// own field 1. If field 2 follows in
// the inner message, the file cannot be a log, and damage is an error.
func readProfile(path string) (*profile.Profile, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	var in io.Reader = f
	if z, err := gzip.NewReader(f); err == nil {
		in = z
	} else if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, nil
	}
	head := make([]byte, 64)
	n, _ := io.ReadFull(in, head)
	if head = head[:n]; n < 8 || head[0] != 0x0a || head[2] != 0x08 || bytes.Contains(head, []byte("~m#")) {
		return nil, nil
	}
	p, err := parseProfile(io.MultiReader(bytes.NewReader(head), in))
	if certain := head[1] == 4 && head[4] == 0x10; err != nil && certain {
		return nil, fmt.Errorf("%s: profile of pprof: %w", path, err)
	} else if err != nil {
		return nil, nil
	}
	// Names in a profile are untrusted, like names in an ELF file.
	for _, f := range p.Function {
		f.Name, f.SystemName, f.Filename = printable.Text(f.Name), printable.Text(f.SystemName), printable.Text(f.Filename)
	}
	for _, m := range p.Mapping {
		m.File, m.BuildID = printable.Text(m.File), printable.Text(m.BuildID)
	}
	return p, nil
}

// parseProfile reads a profile, decompressed.
func parseProfile(in io.Reader) (*profile.Profile, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxProfile+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("gzip: the file ends too early")
	case err != nil:
		return nil, err
	case len(data) > maxProfile:
		return nil, fmt.Errorf("over %d MB, decompressed: too large", maxProfile>>20)
	}
	p, err := profile.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err == nil {
		err = checkFrames(p, len(data))
	}
	return p, err
}
