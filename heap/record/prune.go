//go:build linux

package record

// minPrune is the least value of pruneAt: some 20 MB of paths.
const minPrune = 1 << 18

// prune removes empty call paths once there are many paths. It keeps the paths that hold a
// block now or, with AtPeak, at the peak, and the paths to which a thread of the
// process may refer.
func (p *process) prune(threads []*thread) {
	if int(p.tree.n) < max(p.pruneAt, minPrune) {
		return
	}
	old := p.tree
	moved := make([]pathID, old.n)
	p.tree.reset()
	for id := range old.n {
		s := &old.node(id).sum
		if atPeak, _ := p.account.then(s); s.live > 0 || p.config.AtPeak && atPeak > 0 {
			p.tree.adopt(&old, id, moved)
		}
	}
	for id := range roots {
		*p.tree.node(id) = *old.node(id)
	}
	move := func(id *pathID) { *id = p.tree.adopt(&old, *id, moved) }
	p.live.paths(move)
	for _, t := range threads {
		if t == nil || t.proc != p {
			continue
		}
		move(&t.last)
		move(&t.moving.path)
		for i := range t.places {
			move(&t.places[i])
		}
	}
	p.pruneAt = 2 * int(p.tree.n)
}
