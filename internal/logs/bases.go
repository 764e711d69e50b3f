package logs

import (
	"fmt"
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
	r.bases = map[int][]symbol.Base{}
	current, seen := 0, map[symbol.ReturnAddr]bool{} // of one boot at a time
	var notes []string
	finish := func() {
		if len(seen) == 0 {
			return
		}
		found, missing := r.infer(seen)
		r.bases[current] = found
		notes = append(notes, missing...)
		if r.partial {
			maps.Copy(r.seen, seen)
			r.retry = max(8, 2*len(r.seen))
		}
	}
	if r.partial {
		r.seen = map[symbol.ReturnAddr]bool{}
	}
	err := r.passRaw(func(rec *dump.Record) {
		if boot := r.sequence.Boot(); boot != current {
			finish()
			current, seen = boot, map[symbol.ReturnAddr]bool{}
		}
		r.gather(seen, rec)
	})
	told := r.Process.Maps.Space() != nil
	r.Process.Maps.Reset()
	if err != nil || told {
		r.bases = nil
		return err
	}
	finish()
	for _, n := range notes[:min(len(notes), maxBaseNotes)] {
		if !r.partial {
			r.Note("%s", n)
		}
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

// maxBaseNotes is of how many boots is said that bases cannot be inferred.
const maxBaseNotes = 50

// infer infers bases from addresses; missing says of files that it cannot.
func (r *Reader) infer(seen map[symbol.ReturnAddr]bool) (found []symbol.Base, missing []string) {
	list := slices.Collect(maps.Keys(seen))
	files := r.Process.Files.FilesWithoutBase()
	found = symbol.InferBases(files, list)
	for _, f := range files {
		if !slices.ContainsFunc(found, func(b symbol.Base) bool { return b.File == f }) {
			b := f.BestBase(list)
			missing = append(missing, fmt.Sprintf("%s: cannot infer the load base: at the best one, %d of the %d addresses in its code follow a call, at the next best, %d; needed are about %d, and twice as many as at the next best; give --maps or -e %s@0xADDR, or link with -no-pie",
				f.Path, b.Votes, b.InCode, b.RunnerUp, f.AddrsForBase(), f.Path))
		}
	}
	return found, missing
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
	if found, _ := r.infer(r.seen); len(found) > 0 {
		r.Process.Files.SetBases(found)
		r.epoch++
	}
}
