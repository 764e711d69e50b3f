package query

import (
	"context"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Unnamed returns, for each build, the addresses of its call paths for which there are no frames, sorted.
func (d *DB) Unnamed(ctx context.Context) (map[string][]string, error) {
	list, err := ask[struct{ Build, Address string }](ctx, d, Scope{}, []string{store.Paths, store.Frames}, text("unnamed"))
	byBuild := map[string][]string{}
	for _, r := range list {
		byBuild[r.Build] = append(byBuild[r.Build], r.Address)
	}
	return byBuild, err
}
