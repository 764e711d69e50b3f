package main

import (
	"fmt"
	"os"

	pprof "github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/heap/cmd/btheap/internal/heapfile"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/export"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// profiles reads the arguments as files of other heap profilers. It returns nil if they are
// logs.
func (s *session) profiles() (list []*pprof.Profile, err error) {
	for i, path := range s.files {
		p, err := heapfile.Read(path)
		if err != nil {
			return nil, err
		}
		if p == nil && len(list) > 0 || p != nil && len(list) == 0 && i > 0 {
			if _, err := os.Stat(path); err != nil && path != cli.Stdio {
				return nil, err
			}
			return nil, fmt.Errorf("%s: logs and heap profiles cannot be read together", path)
		}
		if p != nil {
			list = append(list, p)
		}
	}
	if list == nil {
		return nil, nil
	}
	for _, name := range []string{"exe", "force", "maps", "sysroot", "debug-dir", "machine", "split", "bare", "input-format", "strict", "at"} {
		if s.c.Flags().Changed(name) {
			return nil, cli.BadArgsf("--%s has no effect here: it is for logs, and %s is a heap profile", name, s.files[0])
		}
	}
	return list, nil
}

// readProfiles converts each profile to a dump.
func (s *session) readProfiles(list []*pprof.Profile) error {
	b := profile.NewBuilder(int(s.maxPaths))
	for i, p := range list {
		d, err := export.FromPprof(b, p, s.files[i])
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
	case to > n:
		return cli.Usagef("--dump %s: there are %d profiles", s.Dump, n)
	}
	s.dumps = s.dumps[from-1 : to]
	return nil
}
