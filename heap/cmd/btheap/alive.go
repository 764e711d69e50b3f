package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/replay"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// aliveBlock is a block of the last dump.
type aliveBlock struct {
	replay.Block
	dumps int // in how many dumps in a row it was, up to the last one
	stack []profile.Site
}

// findAlive reads the logs again and returns the blocks that were in the last --alive dumps, or
// in more, the oldest first. Blocks are the same if their addresses, sizes and call paths are
// equal. Only dumps whose records have addresses count, and of those with some of the blocks none
// if there are dumps with all.
func (l *leaks) findAlive() ([]aliveBlock, error) {
	if l.reader == nil {
		return nil, cli.BadArgsf("--alive needs a log: profiles of pprof have no addresses")
	}
	type state struct {
		last  *profile.Dump // the last dump with addresses
		dumps map[replay.Block]int
	}
	parts := map[string]state{}
	var s state
	err := each(l.reader.DumpBlocks(), l.out.Add, func(d heaplog.DumpBlocks) {
		before := parts[d.Part()]
		if before.last != nil && before.last.Boot != d.Boot {
			before = state{}
		}
		now := map[replay.Block]int{}
		for b := range d.Blocks {
			now[b] = before.dumps[b] + 1
		}
		if len(now) > 0 && d.Line > 0 && !d.Diff {
			s = state{d.Dump, now}
			parts[d.Part()] = s
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%w (--alive reads the log twice)", err)
	}
	if whole := parts[""]; whole.last != nil {
		s = whole
	}
	if s.last == nil {
		return nil, cli.Usagef("--alive: the log has no dump with addresses of blocks, as btrecord --addresses writes them")
	}
	p, err := newView(l.view, s.last)
	if err != nil {
		return nil, err
	}
	var list []aliveBlock
	for b, n := range s.dumps {
		if stack, shown := p.Stack(b.Path); shown && n >= int(l.alive) {
			list = append(list, aliveBlock{b, n, stack})
		}
	}
	slices.SortFunc(list, func(a, b aliveBlock) int {
		return cmp.Or(cmp.Compare(b.dumps, a.dumps), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Addr, b.Addr))
	})
	return list, nil
}

// writeAlive writes the blocks by call path, the largest sum first.
func (l *leaks) writeAlive(w io.Writer, list []aliveBlock) {
	type group struct {
		blocks []aliveBlock
		bytes  uint64
	}
	groups := map[profile.Path]*group{}
	var order []*group
	for _, b := range list {
		g := groups[b.Path]
		if g == nil {
			g = &group{}
			groups[b.Path] = g
			order = append(order, g)
		}
		g.blocks = append(g.blocks, b)
		g.bytes += b.Bytes
	}
	slices.SortStableFunc(order, func(a, b *group) int { return cmp.Compare(b.bytes, a.bytes) })
	fmt.Fprintf(w, "\n%s that lived for %s or more\n", cli.Count(len(list), "block"), cli.Count(int(l.alive), "dump"))
	order, left := first(order, l.rows)
	for _, g := range order {
		fmt.Fprintf(w, "\n%s bytes in %s\n", cli.Number(g.bytes), cli.Count(len(g.blocks), "block"))
		l.stack(w, g.blocks[0].stack)
		for k, b := range g.blocks {
			if k == 8 {
				fmt.Fprintf(w, "  %s more\n", cli.Number(len(g.blocks)-k))
				break
			}
			fmt.Fprintf(w, "  %#x: %s bytes, %s\n", b.Addr, cli.Number(b.Bytes), cli.Count(b.dumps, "dump"))
		}
	}
	writeMore(w, "", left, "more call path")
}
