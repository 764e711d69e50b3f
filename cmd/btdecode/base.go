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
	seen := map[symbol.ReturnAddr]bool{}
	err := d.scan(nil, func(rec *dump.Record) error {
		if rec.Err != nil && !rec.Cut {
			return nil
		}
		for i, pc := range rec.Stack.PCs {
			lossy := rec.Stack.Marks.Lossy>>i&1 != 0 && !d.process.Lossless
			seen[symbol.ReturnAddr{PC: pc, Lossy: lossy}] = true
		}
		return nil
	})
	told := d.process.Maps.Space() != nil
	d.scanner, d.markup = nil, 0
	d.process.Maps.Reset()
	if err != nil || told {
		return err
	}
	var list []symbol.ReturnAddr
	for s := range seen {
		list = append(list, s)
	}
	r := &d.process.Files
	found := symbol.InferBases(r.FilesWithoutBase(), list)
	r.SetBases(found)
	for _, f := range r.FilesWithoutBase() {
		if !slices.ContainsFunc(found, func(b symbol.Base) bool { return b.File == f }) {
			d.note("%s: cannot infer the load base: %d addresses, about %d in its code needed; give --maps, or -e %s@0xADDR",
				f.Path, len(list), f.AddrsForBase(), f.Path)
		}
	}
	return nil
}
