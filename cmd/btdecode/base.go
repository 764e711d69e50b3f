package main

import (
	"slices"

	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/symbol"
)

// findBases reads everything once to learn where the files were loaded, unless
// the log itself tells.
func (d *decoder) findBases() error {
	if err := d.spool(); err != nil {
		return err
	}
	seen := map[symbol.Seen]bool{}
	err := d.scan(nil, func(rec *dump.Record) error {
		if rec.Err != nil && !rec.Cut {
			return nil
		}
		for i, pc := range rec.Stack.PCs {
			hurt := rec.Stack.Marks.Lossy>>i&1 != 0 && !d.process.Whole
			seen[symbol.Seen{PC: pc, Hurt: hurt}] = true
		}
		return nil
	})
	told := d.process.Space() != nil
	d.scanner, d.process.Timeline, d.markup = nil, symbol.Timeline{}, 0
	if err != nil || told {
		return err
	}
	var list []symbol.Seen
	for s := range seen {
		list = append(list, s)
	}
	r := &d.process.Resolver
	found := symbol.FindBase(r.Floating(), list)
	r.SetBases(found)
	for _, f := range r.Floating() {
		if !slices.ContainsFunc(found, func(b symbol.Base) bool { return b.File == f }) {
			d.note("%s: no load base stands out from the %d addresses of the log; give --maps, or -e %s@0xBASE",
				f.Path, len(list), f.Path)
		}
	}
	return nil
}
