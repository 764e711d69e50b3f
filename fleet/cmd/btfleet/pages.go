package main

import (
	"net/http"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// pages returns the handler of the page over a store.
func pages(*store.Store) http.Handler { return nil }
