package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/lwsbt/lwsbt/internal/input"
	"github.com/lwsbt/lwsbt/symbol"
)

// ReadMaps reads copies of /proc/PID/maps. Where they overlap, the later one takes precedence.
func ReadMaps(ctx context.Context, paths []string) (all []symbol.Mapping, err error) {
	for _, path := range paths {
		file := input.NewAhead(ctx, path) // it may be a pipe such as <(ssh …) that stays silent
		var opening *fs.PathError
		list, err := symbol.ReadMaps(file, path)
		file.Close()
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%s: interrupted", path)
		case errors.As(err, &opening): // it names the file
			return nil, opening
		case err != nil:
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}
