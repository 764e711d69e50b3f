package logs

import (
	"maps"
	"slices"

	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/symbol"
)

// inferBases reads everything once to learn where the files were loaded in each
// boot, unless the log itself tells. Of a live log it reads what there is.
func (r *Reader) inferBases() error {
	if r.flags.Follow || r.flags.Serial != "" {
		r.partial, r.seen, r.retry = true, map[symbol.ReturnAddr]bool{}, 8
		r.bases = map[int][]symbol.Base{}
		return nil
	}
	if err := r.spool(false); err != nil {
		return err
	}
	seen := map[int]map[symbol.ReturnAddr]bool{}
	err := r.passRaw(func(rec *dump.Record) {
		boot := r.sequence.Boot()
		if seen[boot] == nil {
			seen[boot] = map[symbol.ReturnAddr]bool{}
		}
		r.gather(seen[boot], rec)
	})
	told := r.Process.Maps.Space() != nil
	r.Process.Maps.Reset()
	if err != nil || told {
		return err
	}
	r.bases = map[int][]symbol.Base{}
	for _, boot := range slices.Sorted(maps.Keys(seen)) {
		r.bases[boot] = r.infer(seen[boot], !r.partial)
	}
	if r.partial {
		r.seen = map[symbol.ReturnAddr]bool{}
		for _, s := range seen {
			maps.Copy(r.seen, s)
		}
		r.retry = max(8, 2*len(r.seen))
	}
	if len(r.bases) == 1 {
		for _, b := range r.bases {
			r.Process.Files.SetBases(b)
		}
	}
	return nil
}

// maxGathered is how many distinct addresses of a boot are gathered: more tell no
// more about its load bases.
const maxGathered = 1 << 20

// gather adds the addresses of a record.
func (r *Reader) gather(to map[symbol.ReturnAddr]bool, rec *dump.Record) {
	if len(to) >= maxGathered {
		return
	}
	lossless := r.flags.machSet && !r.flags.mach.Lossy()
	for i, pc := range rec.Stack.PCs {
		to[symbol.ReturnAddr{PC: pc, Lossy: rec.Stack.Marks.Lossy>>i&1 != 0 && !lossless}] = true
	}
}

// infer infers bases from addresses, and says of files that it cannot, if say.
func (r *Reader) infer(seen map[symbol.ReturnAddr]bool, say bool) []symbol.Base {
	list := slices.Collect(maps.Keys(seen))
	files := r.Process.Files.FilesWithoutBase()
	found := symbol.InferBases(files, list)
	for _, f := range files {
		if say && !slices.ContainsFunc(found, func(b symbol.Base) bool { return b.File == f }) {
			r.Note("%s: cannot infer the load base: %d addresses, about %d in its code needed; give --maps, or -e %s@0xADDR",
				f.Path, len(list), f.AddrsForBase(), f.Path)
		}
	}
	return found
}

// turnToBoot has addresses looked up as the current boot has them.
func (r *Reader) turnToBoot() {
	if b := r.sequence.Boot(); b != r.boot {
		r.boot = b
		if bases, ok := r.bases[b]; ok && len(r.bases) > 1 {
			r.Process.Files.SetBases(bases)
			r.epoch++
		}
	}
}

// inferAgain tries again on a live log, each time that twice as many distinct
// addresses were met.
func (r *Reader) inferAgain(rec *dump.Record) {
	if r.Process.Maps.Space() != nil || len(r.seen) > 1<<20 {
		return
	}
	r.gather(r.seen, rec)
	if len(r.seen) < r.retry {
		return
	}
	r.retry = 2 * len(r.seen)
	if found := r.infer(r.seen, false); len(found) > 0 {
		r.Process.Files.SetBases(found)
		r.epoch++
	}
}
