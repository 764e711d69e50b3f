package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Limits of one compaction.
const (
	minInputs = 4       // fewer files of a part are not compacted
	maxSize   = 2 << 20 // bytes of the files of facts and dumps
	maxRows   = 1 << 19 // facts, which are held in memory: no more files are read then
)

// Compact merges the files of each day, and removes duplicate uploads of the files that it
// merges. It deletes files that were replaced more than grace ago. It reads a file only to merge it with
// others that are together at least half as large: the cost is that of what is new, times the logarithm
// of the size of a day. Several processes may compact a store at the same time: one of them gets the number
// of a compaction. The next call continues an interrupted compaction. It moves a damaged file to quarantine, and returns a
// [Damaged].
func (s *Store) Compact(ctx context.Context, grace time.Duration) error {
	if err := s.cleanPartial(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	parts, err := s.parts()
	if err != nil {
		return err
	}
	sizes := map[string]int64{} // of the files of facts and dumps of a batch, by the name of the latter
	for _, table := range []string{Facts, Dumps} {
		files, err := s.names(table + "/")
		if err != nil {
			return err
		}
		for _, o := range files {
			if p, base, ok := split(o.Name); ok {
				sizes[p.name(Dumps, base, ".parquet")] += o.Size
			}
		}
	}
	var failed []error
	for _, c := range parts {
		err := s.clean(c, grace)
		for more := true; more && err == nil; {
			more, err = s.compact(&c, sizes)
			if bad, ok := errors.AsType[*Damaged](err); ok {
				failed = append(failed, err)
				_, base, _ := split(bad.Name)
				c.live = slices.DeleteFunc(c.live, func(b string) bool { return b == base })
				more, err = true, s.Quarantine(ctx, bad.Name)
			}
		}
		if failed = append(failed, err); ctx.Err() != nil {
			break
		}
	}
	err = s.mergeJudged(func(*JudgedDevice) bool { return true })
	if bad, ok := errors.AsType[*Damaged](err); ok { // its devices are judged again
		err = cmp.Or(s.Quarantine(ctx, bad.Name), err)
	}
	return errors.Join(append(failed, err)...)
}

// inputs returns the files of a part that are merged next, nil if that is not worthwhile: the smallest
// ones, as long as each is at most twice as large as those before it together.
func (c *contents) inputs(sizes map[string]int64) []string {
	size := func(base string) int64 { return sizes[c.name(Dumps, base, ".parquet")] }
	list := slices.DeleteFunc(slices.Clone(c.live), func(base string) bool { return c.rows[base] > maxRows/2 })
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(size(a), size(b)) })
	sum := int64(0)
	for i, base := range list {
		n := size(base)
		if sum+n > maxSize || i >= minInputs && n > 2*sum {
			list = list[:i]
			break
		}
		sum += n
	}
	if len(list) < minInputs {
		return nil
	}
	slices.Sort(list) // the oldest first: of two copies of an upload, that one stays
	return list
}

// compact merges files of a part once. more reports whether there may be others to merge.
func (s *Store) compact(c *contents, sizes map[string]int64) (more bool, err error) {
	if c.unfinished() {
		job, err := s.compaction(c.list(c.last))
		if err != nil {
			return false, err
		}
		inputs := slices.DeleteFunc(slices.Clone(job.Inputs), func(base string) bool { return !slices.Contains(c.live, base) }) // in quarantine
		batch, _, err := s.merge(c.part, inputs, math.MaxInt, nil)
		if err != nil {
			return false, err
		}
		return true, s.finish(c, batch, inputs)
	}
	inputs := c.inputs(sizes)
	if inputs == nil {
		return false, nil
	}
	batch, used, err := s.merge(c.part, inputs, maxRows, nil)
	if err != nil || len(used) < 2 {
		return false, err
	}
	more, err = s.replace(c, batch, used)
	for _, base := range used {
		sizes[c.name(Dumps, generation(c.last), ".parquet")] += sizes[c.name(Dumps, base, ".parquet")]
	}
	return more, err
}

// list returns the name of the list of a compaction.
func (c *contents) list(n int) string { return c.name(compactions, fmt.Sprintf("%06d", n), ".json") }

// unfinished reports whether a list was written, and not the files.
func (c *contents) unfinished() bool {
	return c.last > 0 && !slices.Contains(c.live, generation(c.last)) && !slices.Contains(c.replaced, generation(c.last))
}

// replace writes a batch as the next generation, which replaces files. It is false if another process was faster.
func (s *Store) replace(c *contents, batch *Batch, inputs []string) (ok bool, err error) {
	job := compaction{Inputs: inputs, Rows: len(batch.Facts)}
	job.Sum = job.sum()
	data, err := json.Marshal(job)
	if err != nil {
		return false, err
	}
	err = s.put(c.list(c.last+1), true, data)
	if errors.Is(err, ErrExists) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.last++
	return true, s.finish(c, batch, inputs)
}

// finish writes the files of the last generation.
func (s *Store) finish(c *contents, batch *Batch, inputs []string) error {
	batch.Name = generation(c.last)
	if err := s.putIn(c.part, batch); err != nil {
		return err
	}
	c.rows[batch.Name] = len(batch.Facts)
	c.live = append(slices.DeleteFunc(c.live, func(base string) bool { return slices.Contains(inputs, base) }), batch.Name)
	c.replaced = append(c.replaced, inputs...)
	return nil
}

// merge reads files of a part until it has limit facts or more, and drops uploads that an earlier file
// contains, and dumps for which dropped, if not nil, is true. used lists the files that were read.
func (s *Store) merge(p part, inputs []string, limit int, dropped func(*Dump) bool) (b *Batch, used []string, err error) {
	b = &Batch{}
	type upload struct{ device, sum string }
	type dump struct {
		device     string
		boot, dump int64
	}
	seen := map[upload]string{} // first file with the upload
	type path struct {
		build string
		path  int64
	}
	known := map[path]bool{}
	for _, in := range inputs {
		if len(b.Facts) >= limit {
			break
		}
		used = append(used, in)
		dumps, err := Read[Dump](s, p.name(Dumps, in, ".parquet"))
		if err != nil {
			return nil, nil, err
		}
		facts, err := Read[Fact](s, p.name(Facts, in, ".parquet"))
		if err != nil {
			return nil, nil, err
		}
		paths, err := Read[Path](s, p.name(Paths, in, ".parquet"))
		if err != nil {
			return nil, nil, err
		}
		again := map[dump]bool{}
		for _, d := range dumps {
			u := upload{d.Device, d.Upload}
			if first, ok := seen[u]; ok && first != in || dropped != nil && dropped(&d) {
				again[dump{d.Device, d.Boot, d.Dump}] = true
				continue
			}
			seen[u] = in
			b.Dumps = append(b.Dumps, d)
		}
		for _, f := range facts {
			if !again[dump{f.Device, f.Boot, f.Dump}] {
				b.Facts = append(b.Facts, f)
			}
		}
		for _, r := range paths {
			if k := (path{r.Build, r.Path}); !known[k] {
				known[k] = true
				b.Paths = append(b.Paths, r)
			}
		}
	}
	return b, used, nil
}

// clean deletes the files of a part that were replaced more than grace ago.
func (s *Store) clean(c contents, grace time.Duration) error {
	if time.Since(c.since) < grace {
		return nil
	}
	for _, base := range c.replaced {
		if err := s.drop(c.part, base); err != nil {
			return err
		}
	}
	return nil
}

// drop deletes a file of each table.
func (s *Store) drop(p part, base string) error {
	for _, table := range batchTables {
		if err := s.delete(p.name(table, base, ".parquet")); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	return nil
}

// Retention limits the age and the size of a store. A zero value is no limit.
type Retention struct {
	Age    time.Duration            // days that ended longer ago are deleted
	Size   int64                    // bytes; the oldest days before today are deleted until the rest is smaller
	Labels map[string]time.Duration // dumps with a label, NAME=VALUE, on days that ended longer ago are deleted
}

// Retain deletes the days that exceed the limits, and returns their names. It is an error if what must stay is too large.
func (s *Store) Retain(ctx context.Context, limit Retention, now time.Time) (deleted []string, err error) {
	all, err := s.names("")
	if err != nil {
		return nil, err
	}
	// Delete the lists of compactions last: without them, readers would read the inputs again.
	tables := append(slices.Clone(batchTables), strings.TrimSuffix(Quarantined, "/"), compactions)
	total := int64(0)
	days := map[part][]Object{}
	for _, o := range all {
		total += o.Size
		table, _, _ := strings.Cut(o.Name, "/")
		if p, _, ok := split(o.Name); ok && slices.Contains(tables, table) {
			days[p] = append(days[p], o)
		}
	}
	for _, day := range slices.Sorted(maps.Keys(days)) {
		end, err := time.Parse(time.DateOnly, string(day))
		if err != nil {
			continue
		}
		old := limit.Age > 0 && now.Sub(end.AddDate(0, 0, 1)) > limit.Age
		if !old && (limit.Size <= 0 || total <= limit.Size || day >= dayPart(now)) {
			continue
		}
		order := func(o Object) int {
			return slices.IndexFunc(tables, func(t string) bool { return strings.HasPrefix(o.Name, t+"/") })
		}
		slices.SortStableFunc(days[day], func(a, b Object) int { return order(a) - order(b) })
		for _, o := range days[day] {
			if err := s.delete(o.Name); err != nil {
				return deleted, fmt.Errorf("store: %w", err)
			}
			total -= o.Size
		}
		deleted = append(deleted, string(day))
	}
	if err := cmp.Or(s.dropLabels(limit.Labels, now), s.forgetJudged(limit.Age, now)); err != nil {
		return deleted, err
	}
	if limit.Size > 0 && total > limit.Size {
		return deleted, fmt.Errorf("store: %d bytes without the days before today, more than the limit of %d", total, limit.Size)
	}
	return deleted, nil
}
