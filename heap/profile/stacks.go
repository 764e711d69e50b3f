package profile

import "sync/atomic"

// stackTree numbers stacks, which are lists of 32-bit numbers: of addresses or of call sites.
// Stacks that have their outermost values in common share them as nodes of a tree; the other
// values of a stack are its tail:
//
//	root ── main ── loop ──┬── read ── malloc      nodes: main, loop
//	                       └── parse ── new        tails: read malloc, parse new
//
// So a stack that continues another one takes memory for its own values only, and stacks that
// have nothing in common take no nodes. One goroutine may add stacks while others read those
// that were added before they began.
type stackTree struct {
	nodes  array[treeNode]
	stacks array[treeStack] // by number
	blocks array[[]uint32]  // tails, innermost value first
	used   int              // values of the last block
	index  treeIndex        // of the nodes, with isNode, and of the stacks, by node and next value
}

// treeNode is a value and its callers. Node 0 is the root, which has no value. The number of a
// parent is lower than those of its children.
type treeNode struct{ parent, value uint32 }

// treeStack is a stack: the values of its tail, and then those of a node and its parents.
type treeStack struct {
	at  uint64 // of the tail: number of the block << 32 | index of its innermost value
	end uint64 // node << 32 | length of the tail; changes as stacks are added, so it is atomic
}

const (
	// isNode marks the numbers of nodes in the index.
	isNode = 1 << 31
	// noValue is the next value of a stack that ends at a node.
	noValue = 1<<32 - 1
	// blockSize is the number of values in a block, unless one tail is longer.
	blockSize = 1 << 12
)

// size returns the number of stacks.
func (t *stackTree) size() int { return t.stacks.n }

// stack returns a stack as a node and a tail, innermost value first, which the caller must not
// change.
func (t *stackTree) stack(id uint32) (node uint32, tail []uint32) {
	s := t.stacks.at(int(id))
	end := atomic.LoadUint64(&s.end)
	if n := uint32(end); n > 0 {
		tail = (*t.blocks.at(int(s.at >> 32)))[uint32(s.at):][:n:n]
	}
	return uint32(end >> 32), tail
}

// append appends the values of a stack, innermost first.
func (t *stackTree) append(dst []uint32, id uint32) []uint32 {
	node, tail := t.stack(id)
	dst = append(dst, tail...)
	for node != 0 {
		n := t.nodes.at(int(node))
		dst = append(dst, n.value)
		node = n.parent
	}
	return dst
}

// innermost returns the innermost value of a stack; ok is false if it has none.
func (t *stackTree) innermost(id uint32) (value uint32, ok bool) {
	node, tail := t.stack(id)
	if len(tail) > 0 {
		return tail[0], true
	}
	if node == 0 {
		return 0, false
	}
	return t.nodes.at(int(node)).value, true
}

// length returns the number of values of a stack, or limit if there are more.
func (t *stackTree) length(id uint32, limit int) int {
	node, tail := t.stack(id)
	n := len(tail)
	for ; node != 0 && n < limit; n++ {
		node = t.nodes.at(int(node)).parent
	}
	return min(n, limit)
}

// init adds the root.
func (t *stackTree) init() {
	if t.nodes.n == 0 {
		t.nodes.push(treeNode{})
	}
}

func outermost(tail []uint32) uint32 {
	if len(tail) == 0 {
		return noValue
	}
	return tail[len(tail)-1]
}

// treePlace is a place in the tree: at a node, below which a stack has the tail, innermost value
// first.
type treePlace struct {
	node uint32
	tail []uint32
	// shares reports whether the tail of the stack other begins with the same value; id is that
	// stack.
	shares bool
	id     uint32
}

// find returns the number of the stack of a node and a tail, or if it is not in the tree, its
// place.
func (t *stackTree) find(node uint32, tail []uint32) (p treePlace, found bool) {
	t.init()
	p = treePlace{node: node, tail: tail}
	for {
		number, found := t.index.find(treeNode{p.node, outermost(p.tail)})
		switch {
		case !found:
			return p, false
		case number&isNode != 0:
			p.node, p.tail = number&^isNode, p.tail[:len(p.tail)-1]
		default:
			p.id, p.shares = number, true
			_, other := t.stack(number)
			return p, sharedOuter(other, p.tail) == max(len(other), len(p.tail))
		}
	}
}

// sharedOuter returns how many values two tails have in common at their outer ends.
func sharedOuter(a, b []uint32) (n int) {
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// push adds the stack of a place, and returns its number.
func (t *stackTree) push(p treePlace) uint32 {
	if p.shares {
		_, other := t.stack(p.id)
		n := sharedOuter(other, p.tail)
		p.node, p.tail = t.split(p.id, n), p.tail[:len(p.tail)-n]
	}
	if need := len(p.tail); need > 0 && (t.blocks.n == 0 || len(*t.blocks.at(t.blocks.n - 1))-t.used < need) {
		t.blocks.push(make([]uint32, max(blockSize, need)))
		t.used = 0
	}
	s := treeStack{end: uint64(p.node)<<32 | uint64(len(p.tail))}
	if len(p.tail) > 0 {
		s.at = uint64(t.blocks.n-1)<<32 | uint64(t.used)
		t.used += copy((*t.blocks.at(t.blocks.n - 1))[t.used:], p.tail)
	}
	id := uint32(t.stacks.n)
	t.stacks.push(s)
	t.index.set(treeNode{p.node, outermost(p.tail)}, id)
	return id
}

// split makes nodes of the n outermost values of the tail of a stack, and returns the last.
func (t *stackTree) split(id uint32, n int) uint32 {
	node, tail := t.stack(id)
	for range n {
		node, tail = t.newNode(node, outermost(tail)), tail[:len(tail)-1]
	}
	atomic.StoreUint64(&t.stacks.at(int(id)).end, uint64(node)<<32|uint64(len(tail)))
	t.index.set(treeNode{node, outermost(tail)}, id)
	return node
}

// newNode adds a node, in place of the stack whose tail begins with its value if there is one.
func (t *stackTree) newNode(parent, value uint32) uint32 {
	n := uint32(t.nodes.n)
	t.nodes.push(treeNode{parent, value})
	t.index.set(treeNode{parent, value}, n|isNode)
	return n
}

// add returns the number of the stack of a node and a tail, and adds the stack if it is new.
func (t *stackTree) add(node uint32, tail []uint32) uint32 {
	p, found := t.find(node, tail)
	if found {
		return p.id
	}
	return t.push(p)
}

// node returns the node of the values of a tail below another node, and adds it if it is new.
func (t *stackTree) node(node uint32, tail []uint32) uint32 {
	t.init()
	for ; len(tail) > 0; tail = tail[:len(tail)-1] {
		number, found := t.index.find(treeNode{node, outermost(tail)})
		switch {
		case !found:
			node = t.newNode(node, outermost(tail))
		case number&isNode != 0:
			node = number &^ isNode
		default:
			node = t.split(number, 1)
		}
	}
	return node
}
