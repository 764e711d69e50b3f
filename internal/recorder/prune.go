//go:build linux

package recorder

// minPrune is the least value of pruneAt: some 20 MB of paths.
const minPrune = 1 << 18

// prune removes empty call paths once there are many paths. It keeps the paths that hold a
// block now, in forks or, with AtPeak, at the peak, and the paths to which a thread of the
// process may refer.
func (p *process) prune(threads []*thread) {
	if len(p.tree.nodes) < max(p.pruneAt, minPrune) {
		return
	}
	wanted := make([]bool, len(p.tree.nodes))
	for id := range p.account.sums {
		s := &p.account.sums[id]
		wanted[id] = s.live > 0 || p.config.AtPeak && s.epoch == p.account.epoch && s.peakLive > 0
	}
	refer := func(each func(*pathID)) {
		p.live.paths(each)
		for i := range p.forks {
			p.forks[i].live.paths(each)
		}
		for _, t := range threads {
			if t == nil || t.proc != p {
				continue
			}
			each(&t.last)
			each(&t.moving.path)
			for i := range t.places {
				each(&t.places[i])
			}
		}
	}
	refer(func(id *pathID) { wanted[*id] = true })
	moved := p.tree.prune(wanted)
	refer(func(id *pathID) { *id = moved[*id] })
	sums, defined := make([]sum, len(p.tree.nodes)), make([]bool, len(p.tree.nodes))
	for id, to := range moved {
		if to == 0 && id != 0 {
			continue
		}
		if id < len(p.account.sums) {
			sums[to] = p.account.sums[id]
		}
		if id < len(p.defined) {
			defined[to] = p.defined[id]
		}
	}
	p.account.sums, p.defined = sums, defined
	p.pruneAt = 2 * len(p.tree.nodes)
}
