package profile

// versioned has values by number. Its versions share what they have in common, and each takes time and
// memory for its changes only. The zero versioned has no values.
type versioned[T any] struct {
	root   *fork[T]
	levels int // of forks above the leaves
}

// fork is a node: a leaf with values, or an inner node.
type fork[T any] struct {
	kids   *[forks]*fork[T]
	values *[forks]T
	of     *edit
}

// edit identifies who may change a node in place.
type edit struct{ _ byte }

const (
	forkBits = 4
	forks    = 1 << forkBits
)

// at returns the value of a number, zero if it has none.
func (t *versioned[T]) at(i uint32) (v T) {
	if uint64(i)>>(forkBits*(t.levels+1)) != 0 {
		return v
	}
	x := t.root
	for level := t.levels; x != nil && level > 0; level-- {
		x = x.kids[i>>(forkBits*level)%forks]
	}
	if x == nil {
		return v
	}
	return x.values[i%forks]
}

// set sets the value of a number. It does not change other versions, whose nodes are not of by.
func (t *versioned[T]) set(i uint32, v T, by *edit) {
	for uint64(i)>>(forkBits*(t.levels+1)) != 0 {
		if t.levels++; t.root != nil {
			t.root = &fork[T]{kids: &[forks]*fork[T]{t.root}, of: by}
		}
	}
	at := &t.root
	for level := t.levels; ; level-- {
		x := *at
		switch {
		case x == nil && level > 0:
			x = &fork[T]{kids: new([forks]*fork[T]), of: by}
		case x == nil:
			x = &fork[T]{values: new([forks]T), of: by}
		case x.of == by:
		case level > 0:
			kids := *x.kids
			x = &fork[T]{kids: &kids, of: by}
		default:
			values := *x.values
			x = &fork[T]{values: &values, of: by}
		}
		*at = x
		if level == 0 {
			x.values[i%forks] = v
			return
		}
		at = &x.kids[i>>(forkBits*level)%forks]
	}
}
