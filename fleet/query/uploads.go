package query

import (
	"context"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// Uploads returns the uploads of the scope, by device and sum, and the last dump of each device, with the columns that package ingest
// needs. It is an error if a file is damaged, since its uploads are not known.
func (d *DB) Uploads(ctx context.Context, o Scope) (sums map[[2]string]bool, last map[string]store.Dump, err error) {
	o.copies = true
	list, err := ask[struct{ Device, Upload string }](ctx, d, o, onlyDumps, "select distinct device, upload from dumps")
	if err != nil {
		return nil, nil, err
	}
	dumps, err := ask[struct {
		Build, FW, Device    string
		Boot, Dump           int64
		Time                 time.Time
		Uptime, Bytes, Count int64
		Complete             bool
	}](ctx, d, o, onlyDumps, text("last"))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range d.Damaged() {
		if !strings.HasPrefix(name, store.Quarantined) {
			return nil, nil, &store.Damaged{Name: name, Err: store.ErrSum}
		}
	}
	sums, last = map[[2]string]bool{}, map[string]store.Dump{}
	for _, u := range list {
		sums[[2]string{u.Device, u.Upload}] = true
	}
	for _, r := range dumps {
		last[r.Device] = store.Dump{Build: r.Build, FW: r.FW, Device: r.Device, Boot: r.Boot, Dump: r.Dump, Time: r.Time.UnixMicro(), Uptime: r.Uptime,
			Bytes: r.Bytes, Count: r.Count, Complete: r.Complete}
	}
	return sums, last, nil
}

// Unnamed returns, for each build, the addresses of its call paths for which there are no frames, sorted.
func (d *DB) Unnamed(ctx context.Context) (map[string][]string, error) {
	list, err := ask[struct{ Build, Address string }](ctx, d, Scope{}, []string{store.Paths, store.Frames}, text("unnamed"))
	byBuild := map[string][]string{}
	for _, r := range list {
		byBuild[r.Build] = append(byBuild[r.Build], r.Address)
	}
	return byBuild, err
}
