package dwarf

// maxHops limits the references followed to find a name: from an inlined call to its
// function, from a definition to its declaration.
const maxHops = 16

const nameBytes = 56 // memory per name, in addition to the name

// funcName is the name of a function.
type funcName struct {
	text    string
	linkage bool // text is its linkage name
}

// nameOf returns the linkage name of the function at an offset of info, or else its source
// name, or "".
func (d *Data) nameOf(die uint64, hops int) funcName {
	n, ok := d.names[die]
	if !ok && hops < maxHops {
		n = d.findName(die, hops)
		d.Budget.Alloc(nameBytes)
		d.names[die] = n
	}
	return n
}

func (d *Data) findName(die uint64, hops int) funcName {
	u := d.unitAt(die)
	if u == nil || die < u.die {
		return funcName{}
	}
	t, err := u.table()
	if err != nil {
		return funcName{}
	}
	c := d.within(Info, die, u.end)
	ab := t.get(c.uleb())
	if ab == nil {
		return funcName{}
	}
	var e entry
	if u.readEntry(&c, ab.attrs, &e); c.err != nil {
		return funcName{}
	}
	name, linkage := u.text(e[atLinkage]), true
	if len(name) == 0 {
		name, linkage = u.text(e[atName]), false
		var other funcName
		switch origin := e[atOrigin]; {
		case origin.class == classRef:
			other = d.nameOf(origin.u, hops+1)
		case origin.class == classAltRef && d.Alt != nil:
			other = d.Alt.nameOf(origin.u, hops+1)
		}
		if other.linkage || len(name) == 0 {
			return other
		}
	}
	d.Budget.Alloc(int64(len(name)))
	return funcName{string(name), linkage}
}
