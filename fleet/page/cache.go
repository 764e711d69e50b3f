package page

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// entry is an answer that has been computed, or is being computed.
type entry struct {
	done    chan struct{} // closed when the rest is set
	version string        // of the rows from which it is computed
	asked   time.Time
	begin   time.Time
	took    time.Duration
	data    any
	err     error
}

// slot holds the last answer to a question, and the one that is being computed; each may be nil.
type slot struct {
	last, next *entry
	used       time.Time
}

// cache holds answers. It computes one again if the version of the rows is another one.
type cache struct {
	size  int           // number of answers
	slots chan struct{} // limits computations at the same time; nil for no limit
	rest  int           // after a computation, the answer is kept for its time, rest times

	mu sync.Mutex
	m  map[string]*slot
}

// working is the error of a question that is still being computed, and has no earlier answer.
type working struct{ since time.Time }

func (w *working) Error() string {
	return fmt.Sprintf("the answer is being computed, for %d s so far; it is kept for the next request", int(time.Since(w.since).Seconds()))
}

// unanswered is the least patience if there is no earlier answer.
const unanswered = 15 * time.Second

// get returns the answer to a question, from rows of this version. Concurrent requests wait for one computation. If
// the new answer takes longer than the patience, get returns that from an earlier version, or, if there is none,
// an error of type *working.
func (c *cache) get(ctx context.Context, key, version string, patience time.Duration, answer func(context.Context) (any, error)) (*entry, error) {
	last, next := c.start(ctx, key, version, answer)
	if next == nil {
		return last, nil
	}
	if last == nil {
		patience = max(patience, unanswered)
	}
	select {
	case <-next.done:
		return next, next.err
	case <-time.After(patience):
		if last == nil {
			return nil, &working{next.asked}
		}
		return last, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start returns the last answer, and the one that is being computed if the last is not of this version.
func (c *cache) start(ctx context.Context, key, version string, answer func(context.Context) (any, error)) (last, next *entry) {
	if l := store.LabelsOf(ctx); len(l) > 0 {
		key += fmt.Sprint(l)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.m[key]
	if s == nil {
		c.shrink()
		s = &slot{}
		c.m[key] = s
	}
	s.used = time.Now()
	if l := s.last; l != nil && (l.version == version || time.Since(l.begin) < time.Duration(c.rest)*l.took) {
		return l, nil
	}
	if s.next == nil {
		s.next = &entry{done: make(chan struct{}), version: version, asked: time.Now()}
		// All waiting requests need the answer, so do not cancel it with the request that started it.
		go c.compute(context.WithoutCancel(ctx), s, s.next, answer)
	}
	return s.last, s.next
}

func (c *cache) compute(ctx context.Context, s *slot, e *entry, answer func(context.Context) (any, error)) {
	if c.slots != nil {
		c.slots <- struct{}{}
		defer func() { <-c.slots }()
	}
	e.begin = time.Now()
	e.data, e.err = answer(ctx)
	e.took = time.Since(e.begin)
	c.mu.Lock()
	s.next = nil
	if e.err == nil {
		s.last = e
	}
	c.mu.Unlock()
	close(e.done)
}

// shrink makes place for an answer: the one that was not used for the longest time goes.
func (c *cache) shrink() {
	if len(c.m) >= c.size {
		keys := slices.Collect(maps.Keys(c.m))
		delete(c.m, slices.MinFunc(keys, func(a, b string) int { return c.m[a].used.Compare(c.m[b].used) }))
	}
}
