package main

import (
	"context"
	"log/slog"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// pages returns the pages for a store, or for tables that are not nil. The caller must close the database.
func pages(ctx context.Context, s *store.Store, tables *clickhouse.Store, log *slog.Logger) (*page.Pages, *query.DB, error) {
	if tables != nil {
		db := query.OpenClickHouse(tables)
		return page.New(db, log), db, nil
	}
	db, err := query.Open(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	return page.New(db, log), db, nil
}
