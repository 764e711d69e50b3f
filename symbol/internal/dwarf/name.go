package dwarf

// maxHops is how many entries a name is followed through: from an inlined call
// to its function, from a definition to its declaration.
const maxHops = 16

// nameOf is the name of the function at an offset of info: its linkage name, or
// its plain one; "" if it has none.
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
		if !d.Budget.Step(1) {
			break
		}
		u := d.unitAt(die)
		if u == nil {
			break
		}
		t, err := u.table()
		if err != nil {
			break
		}
		c := d.at(d.Info[:u.end], die)
		ab := t.get(c.uleb())
		if ab == nil {
			break
		}
		// A string in the entry can be as long as the section, and skipping it takes as long.
		if !d.Budget.Step(len(ab.attrs)) {
			break
		}
		start := c.off
		var next value
		for _, a := range ab.attrs {
			switch a.attr {
			case attrLinkageName, attrMIPSLinkage:
				if s := u.text(u.value(&c, a)); len(s) > 0 {
					return string(s)
				}
			case attrName:
				if v := u.value(&c, a); plain == "" {
					plain = string(u.text(v))
				}
			case attrAbstractOrigin, attrSpecification:
				next = u.value(&c, a)
			default:
				u.skip(&c, a)
			}
		}
		if !d.Budget.Step((c.off-start)/bytesPerStep) || c.bad || next.form == 0 || next.form == formRefSig8 {
			break
		}
		if next.form == formGNURefAlt || next.form == formRefSup4 || next.form == formRefSup8 {
			if d.Alt != nil {
				if s := d.Alt.nameOf(next.u); s != "" {
					return s
				}
			}
			break
		}
		if d.names[next.u] != nil && plain == "" {
			return *d.names[next.u]
		}
		die = next.u
	}
	return plain
}
