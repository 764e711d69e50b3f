package symbol

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxHops is how many entries a name is followed through: from an inlined call
// to its function, from a definition to its declaration.
const maxHops = 16

// nameOf is the name of the function at an offset of info: its linkage name, or
// its plain one; "" if it has none.
func (d *dwarf) nameOf(die uint64) string {
	if s := d.names[die]; s != nil {
		return *s
	}
	s := d.findName(die)
	d.names[die] = &s
	return s
}

func (d *dwarf) findName(die uint64) string {
	plain := ""
	for range maxHops {
		u := d.unitAt(die)
		if u == nil {
			break
		}
		t, err := u.table()
		if err != nil {
			break
		}
		c := d.at(d.info[:u.end], die)
		ab := t.get(c.uleb())
		if ab == nil {
			break
		}
		var next value
		for _, a := range ab.attrs {
			switch a.attr {
			case attrLinkageName, attrMIPSLinkage:
				if s := u.text(u.value(&c, a)); len(s) > 0 {
					return string(s)
				}
			case attrName:
				if s := u.text(u.value(&c, a)); plain == "" {
					plain = string(s)
				}
			case attrAbstractOrigin, attrSpecification:
				next = u.value(&c, a)
			default:
				u.skip(&c, a)
			}
		}
		if c.bad || next.form == 0 || next.form == formRefSig8 {
			break
		}
		if next.form == formGNURefAlt || next.form == formRefSup4 || next.form == formRefSup8 {
			if d.alt != nil {
				if s := d.alt.nameOf(next.u); s != "" {
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

// Demangle turns a linkage name of C++ or Rust into what people wrote; any other
// name stays as it is.
func Demangle(name string) string {
	if !strings.HasPrefix(name, "_") {
		return name
	}
	return demangle.Filter(name)
}
