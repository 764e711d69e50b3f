package profile

import (
	"fmt"
	"iter"
	"sync"

	"github.com/lwsbt/lwsbt/symbol"
)

// Path is a call path: return addresses, innermost first. Paths of one [Builder] are
// equal (==) if their addresses are. The zero Path has no address.
type Path struct {
	in *paths // nil if the path is empty
	id uint32
}

// Number returns a number that no other path of a [Builder] has.
func (p Path) Number() uint32 { return p.id }

// appendNumbers appends the numbers of the path's addresses, innermost first.
func (p Path) appendNumbers(dst []uint32) []uint32 {
	if p.in == nil {
		return dst
	}
	return p.in.append(dst, p.id)
}

// Append appends the addresses of the path, innermost first.
func (p Path) Append(dst []symbol.Addr) []symbol.Addr {
	if p.in == nil {
		return dst
	}
	node, tail := p.in.stack(p.id)
	for _, n := range tail {
		dst = append(dst, *p.in.addrs.at(int(n)))
	}
	for node != 0 {
		n := p.in.nodes.at(int(node))
		dst = append(dst, *p.in.addrs.at(int(n.value)))
		node = n.parent
	}
	return dst
}

// Frames returns the frames of the path, innermost first. An address without a symbol
// becomes a frame whose name is the address.
func (p Path) Frames() iter.Seq[symbol.Frame] {
	return func(yield func(symbol.Frame) bool) {
		var f Filter
		var frames []symbol.Frame
		for _, n := range p.appendNumbers(nil) {
			frames, _, _ = f.Frames(frames[:0], *p.in.addrs.at(int(n)))
			for _, f := range frames {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// OtherName is the name of the only frame of the path that represents all call paths beyond the
// limit of a [Builder].
const OtherName = "(other call paths)"

var otherAddr = symbol.Addr{Location: &symbol.Location{Frames: []symbol.Frame{{Func: OtherName, Name: OtherName}}}}

// cutAddrs are the addresses that [CutAddr] has returned, by number of frames.
var cutAddrs sync.Map

// CutAddr returns the outermost address of a call path of which only the inner frames were
// recorded. Its only frame has a name such as "(cut at 31 frames)", with the number of recorded
// frames, and reports show it as the outermost caller. All calls with the same number return
// the same address.
func CutAddr(frames int) symbol.Addr {
	name := fmt.Sprintf("(cut at %d frames)", frames)
	if frames == 1 {
		name = "(cut at 1 frame)"
	}
	l, _ := cutAddrs.LoadOrStore(frames, &symbol.Location{Frames: []symbol.Frame{{Func: name, Name: name}}})
	return symbol.Addr{Location: l.(*symbol.Location)}
}

// Other reports whether the path represents all call paths beyond the limit of its
// [Builder].
func (p Path) Other() bool {
	if p.in == nil {
		return false
	}
	n, ok := p.in.innermost(p.id)
	return ok && *p.in.addrs.at(int(n)) == otherAddr && p.in.length(p.id, 2) == 1
}
