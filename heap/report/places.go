package report

import (
	"slices"

	"github.com/lwsbt/lwsbt/heap/profile"
)

// edge is a call site below a node.
type edge struct{ parent, site int }

// places finds the nodes of the rows of a profile. It takes time for the outer call sites that rows
// have in common once.
type places struct {
	*data
	p     *profile.Profile
	known map[uint32]int // by node of the profile
}

// node returns the node of a row. If there is none, it adds it, or returns 0 unless add is set.
func (x *places) node(row profile.Row, add bool) int {
	at, inner := row.Place()
	var new []uint32
	node := 0
	for ; at != 0; at, _ = x.p.Caller(at) {
		n, known := x.known[at]
		if known {
			node = n
			break
		}
		new = append(new, at)
	}
	for _, at := range slices.Backward(new) {
		_, site := x.p.Caller(at)
		if node = x.below(node, site, add); node == 0 {
			return 0
		}
		x.known[at] = node
	}
	for _, site := range slices.Backward(inner) {
		if node = x.below(node, site, add); node == 0 {
			return 0
		}
	}
	if node == 0 && add {
		node = x.child(0, x.extraSite(noFrames))
	}
	return node
}

// below returns the node of a site below a node. If there is none, it adds it, or returns 0 unless
// add is set.
func (d *data) below(parent int, site profile.Site, add bool) int {
	if add {
		return d.child(parent, d.stack([]profile.Site{site})[0])
	}
	number, known := d.sites[site]
	if !known {
		return 0
	}
	return d.nodes[edge{parent, number}]
}

// find returns the node of a call path, or 0.
func (d *data) find(stack []int) int {
	node := 0
	for _, s := range slices.Backward(stack) {
		n, ok := d.nodes[edge{node, s}]
		if !ok {
			return 0
		}
		node = n
	}
	return node
}

// child returns the node of a site below a node.
func (d *data) child(parent, site int) int {
	n, ok := d.nodes[edge{parent, site}]
	if !ok {
		n = len(d.Parent)
		d.nodes[edge{parent, site}] = n
		d.Parent, d.Site = append(d.Parent, parent), append(d.Site, site)
	}
	return n
}

// noFrames is the name of call paths of which no frame is shown.
const noFrames = "(no frames)"

// extraSite returns the number of a site that is only a name.
func (d *data) extraSite(name string) int { return d.stack([]profile.Site{{Func: name}})[0] }
