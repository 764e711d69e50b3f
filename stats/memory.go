package stats

import (
	"cmp"
	"slices"
	"strings"
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

func (c *Collector) memory(top int) Memory {
	m := Memory{Top: top, Paths: len(c.order)}
	sites := map[string]*Spot{}
	var siteList, pathList []*Spot
	for _, p := range c.order {
		addresses := p.addresses()
		pathList = append(pathList, &Spot{Addresses: addresses, Count: p.count, Bytes: p.bytes})
		first := addresses[:min(1, len(addresses))]
		key := strings.Join(first, "")
		if sites[key] == nil {
			sites[key] = &Spot{Addresses: first}
			siteList = append(siteList, sites[key])
		}
		sites[key].Count += p.count
		sites[key].Bytes = satAdd(sites[key].Bytes, p.bytes)
	}
	m.Sites = len(siteList)
	m.SitesByBytes, m.SitesByCount = c.rank(siteList, top)
	m.PathsByBytes, m.PathsByCount = c.rank(pathList, top)
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
func (c *Collector) rank(all []*Spot, top int) (byBytes, byCount []Spot) {
	take := func(share func(s *Spot) float64, by func(s *Spot) (uint64, uint64)) []Spot {
		slices.SortFunc(all, func(a, b *Spot) int {
			a1, a2 := by(a)
			b1, b2 := by(b)
			return cmp.Or(cmp.Compare(b1, a1), cmp.Compare(b2, a2), slices.Compare(a.Addresses, b.Addresses))
		})
		out := []Spot{}
		for _, s := range all[:min(top, len(all))] {
			s := *s
			s.Share = share(&s)
			out = append(out, s)
		}
		return out
	}
	byBytes = take(func(s *Spot) float64 { return ratio(s.Bytes, c.payload) },
		func(s *Spot) (uint64, uint64) { return s.Bytes, s.Count })
	byCount = take(func(s *Spot) float64 { return ratio(s.Count, c.records) },
		func(s *Spot) (uint64, uint64) { return s.Count, s.Bytes })
	return byBytes, byCount
}
