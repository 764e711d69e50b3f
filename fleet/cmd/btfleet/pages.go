package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// pages returns the pages for a store. The caller must close the database.
func pages(ctx context.Context, s *store.Store, log *slog.Logger) (http.Handler, *query.DB, error) {
	db, err := query.Open(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	return page.New(db, log), db, nil
}
