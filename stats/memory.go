package stats

import (
	"cmp"
	"slices"
)

// Memory is where the memory is that the dump's allocations asked for.
type Memory struct {
	Top            int         `json:"top"`
	Sites          int         `json:"sites"` // in all
	Paths          int         `json:"paths"`
	SitesByBytes   []Spot      `json:"sites_by_bytes"`
	SitesByCount   []Spot      `json:"sites_by_count"`
	PathsByBytes   []Spot      `json:"paths_by_bytes"`
	PathsByCount   []Spot      `json:"paths_by_count"`
	AllocationSize []SizeCount `json:"allocation_size"`
}

// Spot is a call site or a call path and what it allocates. An address that begins
// with "…" is one of which the dump has no more than these low 31 bits.
type Spot struct {
	Addresses []string `json:"addresses"` // innermost first; one for a site, none where there was no frame
	Count     uint64   `json:"count"`
	Bytes     uint64   `json:"bytes"`
	Share     float64  `json:"share"` // of all bytes, or of all allocations in a list by count
}

// SizeCount is the allocations of From to To bytes.
type SizeCount struct {
	From  uint64 `json:"from"`
	To    uint64 `json:"to"`
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

func (p *path) addresses() []string {
	all := make([]string, len(p.pcs))
	for n := range p.pcs {
		all[n] = place(p.id(n), p.hurt>>n&1 == 1)
	}
	return all
}

// spender is a call site or a call path before its addresses are written out.
type spender struct {
	path         *path
	frames       int // of path: 1 for a site, or 0 if it has none
	count, bytes uint64
}

func (s *spender) compareAddresses(o *spender) int {
	for n := range min(s.frames, o.frames) {
		if c := cmp.Compare(s.path.id(n), o.path.id(n)); c != 0 {
			return c
		}
	}
	return cmp.Compare(s.frames, o.frames)
}

func (c *Collector) memory(top int) Memory {
	m := Memory{Top: top, Paths: len(c.order)}
	type site struct {
		id   uint64
		none bool
	}
	at := map[site]int{}
	var sites []spender
	paths := make([]spender, 0, len(c.order))
	for _, p := range c.order {
		paths = append(paths, spender{p, len(p.pcs), p.count, p.bytes})
		s := spender{path: p, frames: min(1, len(p.pcs))}
		key := site{none: true}
		if s.frames == 1 {
			key = site{id: p.id(0)}
		}
		i, ok := at[key]
		if !ok {
			i = len(sites)
			at[key] = i
			sites = append(sites, s)
		}
		sites[i].count += p.count
		sites[i].bytes = satAdd(sites[i].bytes, p.bytes)
	}
	m.Sites = len(sites)
	m.SitesByBytes, m.SitesByCount = c.rank(sites, top)
	m.PathsByBytes, m.PathsByCount = c.rank(paths, top)
	m.AllocationSize = []SizeCount{}
	for n, s := range c.size {
		if s.count == 0 {
			continue
		}
		r := SizeCount{From: 1 << (n - 1), To: 1<<n - 1, Count: s.count, Bytes: s.bytes}
		if n == 1 {
			r.From = 0
		}
		m.AllocationSize = append(m.AllocationSize, r)
	}
	return m
}

// rank is the top spots by bytes and by count. Ties are in the order of addresses, so
// that the same dump gives the same report whatever its order.
func (c *Collector) rank(all []spender, top int) (byBytes, byCount []Spot) {
	byBytes = leaders(all, top, func(s *spender) (uint64, uint64) { return s.bytes, s.count })
	for i := range byBytes {
		byBytes[i].Share = ratio(byBytes[i].Bytes, c.payload)
	}
	byCount = leaders(all, top, func(s *spender) (uint64, uint64) { return s.count, s.bytes })
	for i := range byCount {
		byCount[i].Share = ratio(byCount[i].Count, c.records)
	}
	return byBytes, byCount
}

// leaders is the first top of all by the two numbers that by gives, the larger first.
// It sorts no more than a few of them at once.
func leaders(all []spender, top int, by func(s *spender) (uint64, uint64)) []Spot {
	var first []*spender
	cut := func() {
		slices.SortFunc(first, func(a, b *spender) int {
			a1, a2 := by(a)
			b1, b2 := by(b)
			return cmp.Or(cmp.Compare(b1, a1), cmp.Compare(b2, a2), a.compareAddresses(b))
		})
		first = first[:min(top, len(first))]
	}
	for i := range all {
		if first = append(first, &all[i]); len(first) >= 2*top+1000 {
			cut()
		}
	}
	cut()
	out := []Spot{}
	for _, s := range first {
		out = append(out, Spot{Addresses: s.path.addresses()[:s.frames], Count: s.count, Bytes: s.bytes})
	}
	return out
}
