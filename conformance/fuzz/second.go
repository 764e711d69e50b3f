// Package fuzz compares implementations of SPEC.md on requests that no vector has.
package fuzz

import (
	"context"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/conformance/internal/naive"
)

// Second starts the second codec of this module: slow, simple, and without code of the first.
func Second(ctx context.Context) (conformance.Testee, error) { return naive.Codec(ctx) }
