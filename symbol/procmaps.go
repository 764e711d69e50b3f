package symbol

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ReadMaps reads a snapshot of /proc/PID/maps. name is the name of r in errors.
func ReadMaps(r io.Reader, name string) ([]Mapping, error) {
	var list []Mapping
	modules := map[string]*Module{}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" {
			continue
		}
		m, err := parseMapsLine(line, modules)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		list = append(list, m)
	}
	if err := s.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = errors.New("a line of more than 1 MiB, expected lines as in /proc/PID/maps")
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no mappings, expected lines as in /proc/PID/maps", name)
	}
	return list, nil
}

// parseMapsLine reads "START-END PERM OFFSET DEV INODE PATH".
func parseMapsLine(line string, modules map[string]*Module) (m Mapping, err error) {
	field := func() (s string) {
		s, line, _ = strings.Cut(strings.TrimLeft(line, " \t"), " ")
		return s
	}
	from, to, ok := strings.Cut(field(), "-")
	perm, offset := field(), field()
	m.Start, err = strconv.ParseUint(from, 16, 64)
	if err == nil {
		m.End, err = strconv.ParseUint(to, 16, 64)
	}
	if err == nil {
		m.Offset, err = strconv.ParseUint(offset, 16, 64)
	}
	if !ok || err != nil || len(perm) != 4 || m.End <= m.Start {
		return m, errors.New("expected START-END PERM OFFSET DEV INODE PATH, as in /proc/PID/maps")
	}
	field()
	inode, _ := strconv.ParseUint(field(), 10, 64)
	m.Exec = perm[2] == 'x'
	path := strings.TrimSpace(line)
	if path == "" {
		return m, nil
	}
	if m.Module = modules[path]; m.Module == nil || m.Module.Inode != inode {
		m.Module = &Module{Name: strings.TrimSuffix(path, " (deleted)"), Inode: inode}
		modules[path] = m.Module
	}
	return m, nil
}
