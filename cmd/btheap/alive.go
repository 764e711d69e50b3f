package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heaplog"
	"github.com/lwsbt/lwsbt/internal/cli"
	heap "github.com/lwsbt/lwsbt/profile"
)

// aliveBlock is a block that is in the last dump of the log, and in those before it.
type aliveBlock struct {
	addr, bytes uint64
	dumps       int // in how many dumps in a row it was, up to the last one
	path        heap.Path
	stack       []heap.Site
}

// findAlive reads the logs again and returns the blocks that were in the last n or more
// dumps, the oldest first. Blocks are the same if their addresses, sizes and call paths are
// equal. Only dumps whose records have addresses count.
func (l *leaks) findAlive() (list []aliveBlock, err error) {
	if l.reader == nil {
		return nil, cli.BadArgsf("--alive needs a log: profiles of pprof have no addresses")
	}
	b := heap.NewBuilder(0)
	var before, now map[uint64]aliveBlock
	addresses, boot := false, 0
	for it, err := range l.reader.Items() {
		switch {
		case err != nil:
			if err := l.out.Add(err); err != nil {
				return nil, fmt.Errorf("%w (--alive reads the log twice)", err)
			}
			continue
		case it.Boot != boot:
			before, now, boot = nil, nil, it.Boot
		}
		if it.Kind == heaplog.Mark && it.Header.Verb == codec.VerbBegin {
			if len(now) > 0 {
				before = now
			}
			now = map[uint64]aliveBlock{}
		}
		if now == nil {
			continue
		}
		for x := range blocksOf(it, b) {
			addresses = true
			block := aliveBlock{addr: x.addr, bytes: x.size, dumps: 1, path: x.path}
			if old, ok := before[x.addr]; ok && old.bytes == block.bytes && old.path == block.path {
				block.dumps += old.dumps
			}
			now[x.addr] = block
		}
	}
	if !addresses {
		return nil, cli.Usagef("--alive: the log has no dump with ~h#begin and addresses of blocks, as btrecord --addresses writes them")
	}
	if len(now) == 0 {
		now = before
	}
	return l.named(b, now), nil
}

// named returns the blocks in at least --alive dumps, with the stacks that the view shows.
func (l *leaks) named(b *heap.Builder, blocks map[uint64]aliveBlock) (list []aliveBlock) {
	for _, block := range blocks {
		if block.dumps >= l.alive {
			b.Add(block.path, heap.Value{Bytes: block.bytes, Count: 1})
			list = append(list, block)
		}
	}
	p, err := heap.New(b.End(heap.DumpInfo{}))
	if err != nil {
		return nil // cannot happen: there is a dump
	}
	p = p.View(l.view)
	list = slices.DeleteFunc(list, func(block aliveBlock) bool { _, shown := p.Stack(block.path); return !shown })
	for i := range list {
		list[i].stack, _ = p.Stack(list[i].path)
	}
	slices.SortFunc(list, func(a, b aliveBlock) int {
		return cmp.Or(cmp.Compare(b.dumps, a.dumps), cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.addr, b.addr))
	})
	return list
}

// writeAlive writes the blocks by call path, the largest sum first.
func (l *leaks) writeAlive(w io.Writer, list []aliveBlock) {
	type group struct {
		blocks []aliveBlock
		bytes  uint64
	}
	groups := map[heap.Path]*group{}
	var order []*group
	for _, b := range list {
		g := groups[b.path]
		if g == nil {
			g = &group{}
			groups[b.path] = g
			order = append(order, g)
		}
		g.blocks = append(g.blocks, b)
		g.bytes += b.bytes
	}
	slices.SortStableFunc(order, func(a, b *group) int { return cmp.Compare(b.bytes, a.bytes) })
	fmt.Fprintf(w, "\n%s that lived for %s or more\n", cli.Count(len(list), "block"), cli.Count(l.alive, "dump"))
	for i, g := range order {
		if l.rows > 0 && i == l.rows {
			writeMore(w, len(order)-i, "more call path")
			break
		}
		fmt.Fprintf(w, "\n%s bytes in %s\n", cli.Number(g.bytes), cli.Count(len(g.blocks), "block"))
		stack(w, g.blocks[0].stack)
		for k, b := range g.blocks {
			if k == 8 {
				fmt.Fprintf(w, "  %s more\n", cli.Number(len(g.blocks)-k))
				break
			}
			fmt.Fprintf(w, "  %#x: %s bytes, %s\n", b.addr, cli.Number(b.bytes), cli.Count(b.dumps, "dump"))
		}
	}
}
