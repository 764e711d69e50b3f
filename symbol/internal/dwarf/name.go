package dwarf

// maxHops limits the references followed to find a name: from an inlined call to its
// function, from a definition to its declaration.
const maxHops = 16

const nameBytes = 48 // memory per name, in addition to the name

// nameOf returns the linkage name of the function at an offset of info, or else its source
// name, or "".
func (d *Data) nameOf(die uint64, hops int) string {
	s, ok := d.names[die]
	if !ok && hops < maxHops {
		s = d.findName(die, hops)
		d.Budget.Alloc(nameBytes)
		d.names[die] = s
	}
	return s
}

func (d *Data) findName(die uint64, hops int) string {
	u := d.unitAt(die)
	if u == nil {
		return ""
	}
	t, err := u.table()
	if err != nil {
		return ""
	}
	c := d.at(Info, die)
	c.b = c.b[:u.end]
	ab := t.get(c.uleb())
	if ab == nil {
		return ""
	}
	var e entry
	if u.readEntry(&c, ab.attrs, &e); c.err != nil {
		return ""
	}
	name := u.text(e[atLinkage])
	if len(name) == 0 {
		origin, s := e[atOrigin], ""
		switch {
		case origin.class == classRef:
			s = d.nameOf(origin.u, hops+1)
		case origin.class == classAltRef && d.Alt != nil:
			s = d.Alt.nameOf(origin.u, hops+1)
		}
		if s != "" {
			return s
		}
		name = u.text(e[atName])
	}
	d.Budget.Alloc(int64(len(name)))
	return string(name)
}
