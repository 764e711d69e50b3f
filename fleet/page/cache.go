package page

import (
	"context"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// entry is an answer that has been computed.
type entry struct {
	version string // of the rows from which it is computed
	begin   time.Time
	data    any
}

// cache holds answers, by question. It computes one again if the version of the rows is another one.
type cache struct {
	last   *lru.Cache[string, *entry]
	flight singleflight.Group
	begun  sync.Map // when the answers were asked for that are being computed: time.Time
}

// newCache returns a cache of size answers.
func newCache(size int) *cache {
	last, err := lru.New[string, *entry](size)
	if err != nil {
		panic(err) // only for a size of 0
	}
	return &cache{last: last}
}

// working is the error of a question that is still being computed, and has no earlier answer.
type working struct{ since time.Time }

func (w *working) Error() string {
	return fmt.Sprintf("the answer is being computed, for %d s so far; it is kept for the next request", int(time.Since(w.since).Seconds()))
}

// unanswered is the least patience if there is no earlier answer.
const unanswered = 15 * time.Second

// keyOf returns the key of a question about the dumps with the labels of a context.
func keyOf(ctx context.Context, question string) string {
	return fmt.Sprint(question, store.LabelsOf(ctx))
}

// get returns the answer to a question, from rows of this version. Concurrent requests wait for one computation. If
// the new answer takes longer than the patience, or ctx is done, get returns that from an earlier version, or, if there is none,
// an error: of type *working, or that of ctx.
func (c *cache) get(ctx context.Context, question, version string, patience time.Duration, answer func(context.Context) (any, error)) (*entry, error) {
	key := keyOf(ctx, question)
	last, known := c.last.Get(key)
	if known && (last.version == version || ctx.Err() != nil) {
		return last, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !known {
		patience = max(patience, unanswered)
	}
	done := c.flight.DoChan(key, func() (any, error) {
		if e, ok := c.last.Get(key); ok && e.version == version { // since it was looked for
			return e, nil
		}
		e := &entry{version: version, begin: time.Now()}
		c.begun.Store(key, e.begin)
		defer c.begun.Delete(key)
		var err error
		// All waiting requests need the answer, so do not cancel it with the request that started it.
		if e.data, err = answer(context.WithoutCancel(ctx)); err == nil {
			c.last.Add(key, e)
		}
		return e, err
	})
	var err error
	select {
	case r := <-done:
		return r.Val.(*entry), r.Err
	case <-time.After(patience):
		begin, running := c.begun.Load(key)
		if !running { // it has just ended
			begin = time.Now()
		}
		err = &working{begin.(time.Time)}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if known {
		return last, nil
	}
	return nil, err
}
