package dwarf

import std "debug/dwarf"

// maxHops limits the references followed to find a name: from an inlined call to its
// function, from a definition to its declaration.
const maxHops = 16

// nameOf returns the linkage name of the function at an offset of info, or else its source
// name, or "".
func (d *Data) nameOf(die uint64) string {
	if s := d.names[die]; s != nil {
		return *s
	}
	s := d.findName(die)
	d.Budget.Alloc(int64(len(s)) + entryBytes)
	d.names[die] = &s
	return s
}

func (d *Data) findName(die uint64) string {
	plain := ""
	for range maxHops {
		e, ok := d.readNames(die)
		if len(e.linkage) > 0 {
			return string(e.linkage)
		}
		if plain == "" {
			plain = string(e.plain)
		}
		switch next := e.next; {
		case !ok || next.form == 0 || next.form == formRefSig8:
			return plain
		case next.form == formGNURefAlt || next.form == formRefSup4 || next.form == formRefSup8:
			if d.Alt != nil {
				if s := d.Alt.nameOf(next.u); s != "" {
					return s
				}
			}
			return plain
		case d.names[next.u] != nil && plain == "":
			return *d.names[next.u]
		default:
			die = next.u
		}
	}
	return plain
}

// nameEntry holds the attributes of an entry that name its function.
type nameEntry struct {
	linkage, plain []byte
	next           value // reference to an entry with more names; zero value if none
}

// readNames reads the names of the entry at an offset of info, as far as the first
// linkage name. ok is false if the entry cannot be read, or not to its end.
func (d *Data) readNames(die uint64) (e nameEntry, ok bool) {
	u := d.unitAt(die)
	if u == nil || !d.Budget.Step(1) {
		return e, false
	}
	t, err := u.table()
	if err != nil {
		return e, false
	}
	c := d.at(d.Info[:u.end], die)
	ab := t.get(c.uleb())
	if ab == nil || !d.Budget.Step(len(ab.attrs)) {
		return e, false
	}
	start := c.off
	for _, a := range ab.attrs {
		switch a.attr {
		case std.AttrLinkageName, attrMIPSLinkage:
			if e.linkage = u.text(u.value(&c, a)); len(e.linkage) > 0 {
				return e, true
			}
		case std.AttrName:
			e.plain = u.text(u.value(&c, a))
		case std.AttrAbstractOrigin, std.AttrSpecification:
			e.next = u.value(&c, a)
		default:
			u.skip(&c, a)
		}
	}
	// A string in the entry can be as long as the section, and skipping it takes as long.
	return e, d.Budget.Step((c.off-start)/bytesPerStep) && !c.bad
}
