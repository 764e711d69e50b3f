package heaplog

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

// snapshot is a file of [Maps] and the line of the log from which it applies.
type snapshot struct {
	path string
	from int64
	list []symbol.Mapping
}

// parseSnapshot splits PATH@LINE.
func parseSnapshot(spec string) (snapshot, error) {
	i := strings.LastIndexByte(spec, '@')
	if i <= 0 {
		return snapshot{path: spec}, nil
	}
	if n, err := strconv.ParseInt(spec[i+1:], 10, 64); err == nil && n > 0 {
		return snapshot{path: spec[:i], from: n}, nil
	}
	if _, err := os.Stat(spec); err != nil {
		return snapshot{}, fmt.Errorf("%s: %q, expected FILE@LINE", spec, spec[i+1:])
	}
	return snapshot{path: spec}, nil
}

// readSnapshots reads the files and sorts the snapshots by line.
func readSnapshots(ctx context.Context, all []snapshot) error {
	for i := range all {
		s := &all[i]
		file := input.NewAhead(ctx, s.path) // it may be a pipe such as <(ssh …) that stays silent
		var opening *fs.PathError
		list, err := symbol.ReadMaps(file, s.path)
		file.Close()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: interrupted", s.path)
		case errors.As(err, &opening): // it names the file
			return opening
		case err != nil:
			return err
		}
		s.list = list
	}
	slices.SortStableFunc(all, func(a, b snapshot) int { return cmp.Compare(a.from, b.from) })
	return nil
}
