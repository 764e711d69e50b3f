package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/internal/input"
	"github.com/lwsbt/lwsbt/symbol"
)

// Snapshot is a copy of /proc/PID/maps.
type Snapshot struct {
	Path string
	From int64 // line of the log from which it applies, 0 for the whole log
	List []symbol.Mapping
}

// ParseSnapshot splits PATH or PATH@LINE.
func ParseSnapshot(spec string) (Snapshot, error) {
	i := strings.LastIndexByte(spec, '@')
	if i <= 0 {
		return Snapshot{Path: spec}, nil
	}
	if n, err := strconv.ParseInt(spec[i+1:], 10, 64); err == nil && n > 0 {
		return Snapshot{Path: spec[:i], From: n}, nil
	}
	if _, err := os.Stat(spec); err != nil {
		return Snapshot{}, fmt.Errorf("%s: %q, expected FILE@LINE", spec, spec[i+1:])
	}
	return Snapshot{Path: spec}, nil
}

// ReadSnapshots reads the files and sorts the snapshots by line.
func ReadSnapshots(ctx context.Context, all []Snapshot) error {
	for i := range all {
		s := &all[i]
		file := input.NewAhead(ctx, s.Path) // it may be a pipe such as <(ssh …) that stays silent
		var opening *fs.PathError
		list, err := symbol.ReadMaps(file, s.Path)
		file.Close()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: interrupted", s.Path)
		case errors.As(err, &opening): // it names the file
			return opening
		case err != nil:
			return err
		}
		s.List = list
	}
	slices.SortStableFunc(all, func(a, b Snapshot) int { return cmp.Compare(a.From, b.From) })
	return nil
}
