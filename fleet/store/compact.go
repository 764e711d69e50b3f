package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Limits of one compaction.
const (
	minInputs = 4       // fewer files of a part are not compacted
	maxSize   = 2 << 20 // bytes of the files of facts and dumps
	maxRows   = 1 << 19 // facts, which are held in memory
)

// lock waits until no other process changes files that exist. The lock ends with this process.
func (s *Store) lock(ctx context.Context) (unlock func() error, err error) {
	l := flock.New(s.path(".lock"))
	if _, err := l.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return nil, fmt.Errorf("store: another process compacts it: %w", err)
	}
	return l.Close, nil
}

// Compact merges the files of each day, and removes duplicate uploads of the files that it
// merges. It deletes files that were replaced more than grace ago. It reads a file only to merge it with
// others that are together at least half as large: the cost is that of what is new, times the logarithm
// of the size of a day. One process compacts a store at a time. It moves a damaged file to quarantine, and returns a
// [Damaged].
func (s *Store) Compact(ctx context.Context, grace time.Duration) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	parts, err := s.parts(Dumps)
	if err != nil {
		return err
	}
	sizes, err := s.sizes(parts)
	if err != nil {
		return err
	}
	var failed []error
	for _, c := range parts {
		err := s.clean(&c, batchTables, grace)
		for more := true; more && err == nil; {
			more, err = s.compact(&c, sizes)
			if bad, ok := errors.AsType[*Damaged](err); ok {
				failed = append(failed, err)
				_, base := split(bad.Name)
				c.live = slices.DeleteFunc(c.live, func(b string) bool { return b == base })
				more, err = true, s.Quarantine(ctx, bad.Name)
			}
		}
		if failed = append(failed, err); ctx.Err() != nil {
			break
		}
	}
	err = s.mergeJudged(grace, func(*JudgedDevice) bool { return true })
	if bad, ok := errors.AsType[*Damaged](err); ok { // its devices are judged again
		err = cmp.Or(s.Quarantine(ctx, bad.Name), err)
	}
	return errors.Join(append(failed, err)...)
}

// abandoned is the age at which files count as those of a process that was killed while it wrote them.
const abandoned = time.Hour

// sizes returns the sizes of the files of facts and dumps of batches, by the name of the latter. It deletes what processes have left
// that were killed while writing: partial files, and files of batches without dumps.
func (s *Store) sizes(parts []contents) (map[string]int64, error) {
	all, err := s.files("")
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, c := range parts {
		for _, base := range slices.Concat(c.live, c.replaced) {
			sizes[c.name(Dumps, base)] = 0
		}
	}
	for _, o := range all {
		table, _, _ := strings.Cut(o.Name, "/")
		p, base := split(o.Name)
		_, whole := sizes[p.name(Dumps, base)]
		switch partial := strings.HasPrefix(path.Base(o.Name), ".") && strings.Contains(o.Name, "/"); {
		case partial || !whole && slices.Contains(batchTables, table):
			if time.Since(o.Modified) > abandoned {
				err = cmp.Or(err, s.delete(o.Name))
			}
		case table == Facts || table == Dumps:
			sizes[p.name(Dumps, base)] += o.Size
		}
	}
	return sizes, err
}

// inputs returns the files that are merged next, nil if that is not worthwhile: the smallest ones, as long as each is at most
// twice as large as those before it together, and all have less than a limit.
func inputs(live []string, limit int64, size func(base string) int64) []string {
	list := slices.Clone(live)
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(size(a), size(b)) })
	sum := int64(0)
	for i, base := range list {
		n := size(base)
		if sum+n > limit || i >= minInputs && n > 2*sum {
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
	small := slices.DeleteFunc(slices.Clone(c.live), func(base string) bool { return rowsOf(base) > maxRows/2 })
	list := inputs(small, maxSize, func(base string) int64 { return sizes[c.name(Dumps, base)] })
	if list == nil {
		return false, nil
	}
	batch, list, err := s.merge(c.part, list, maxRows, nil)
	if err != nil || len(list) < 2 {
		return false, err
	}
	err = s.replace(c, batch, list)
	for _, base := range list {
		sizes[c.name(Dumps, batch.Name)] += sizes[c.name(Dumps, base)]
	}
	return true, err
}

// compactedName returns the name of the files of a compaction, which has the time and the number of facts.
func compactedName(facts int) string {
	return fmt.Sprintf("%s%020d-%d", compacted, time.Now().UnixNano(), facts)
}

// rowsOf returns the number of facts in the files of a compaction, 0 for others.
func rowsOf(base string) (facts int) {
	fmt.Sscanf(base, compacted+"%d-%d", new(int64), &facts)
	return facts
}

// replacing returns the metadata of a file that replaces inputs, and all that these or others have replaced.
func (c *contents) replacing(inputs []string) string {
	text, err := json.Marshal(slices.Concat(inputs, c.replaced))
	if err != nil {
		panic(err) // not for strings
	}
	return string(text)
}

// replace writes a batch that replaces files.
func (s *Store) replace(c *contents, batch *Batch, inputs []string) error {
	batch.Name = compactedName(len(batch.Facts))
	if err := s.putIn(c.part, batch, c.replacing(inputs)); err != nil {
		return err
	}
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
	for _, in := range inputs {
		if len(b.Facts) >= limit {
			break
		}
		used = append(used, in)
		dumps, err := Read[Dump](s, p.name(Dumps, in))
		if err != nil {
			return nil, nil, err
		}
		facts, err := Read[Fact](s, p.name(Facts, in))
		if err != nil {
			return nil, nil, err
		}
		paths, err := Read[Path](s, p.name(Paths, in))
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
		facts = slices.DeleteFunc(facts, func(f Fact) bool { return again[dump{f.Device, f.Boot, f.Dump}] })
		b.Facts, b.Paths = append(b.Facts, facts...), append(b.Paths, paths...)
	}
	b.sort() // which drops paths that several files have
	return b, used, nil
}

// clean deletes the files of a part that were replaced more than grace ago.
func (s *Store) clean(c *contents, tables []string, grace time.Duration) error {
	if time.Since(c.since) < grace {
		return nil
	}
	for _, base := range c.replaced {
		for _, table := range tables {
			if err := s.delete(c.name(table, base)); err != nil {
				return err
			}
		}
	}
	c.replaced = nil
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
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := s.names("")
	if err != nil {
		return nil, err
	}
	total := int64(0)
	days := map[part]int64{} // their sizes
	for _, o := range all {
		total += o.Size
		if p, _ := split(o.Name); p != "" && !strings.HasPrefix(o.Name, Frames+"/") {
			days[p] += o.Size
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
		if err := s.dropDay(day); err != nil {
			return deleted, fmt.Errorf("store: %w", err)
		}
		total -= days[day]
		deleted = append(deleted, string(day))
	}
	if err := s.dropLabels(limit.Labels, now); err != nil {
		return deleted, err
	}
	if limit.Age > 0 { // and two days, in which devices are judged again
		oldest := now.Add(-limit.Age - 48*time.Hour).UnixMicro()
		if err := s.mergeJudged(math.MaxInt64, func(d *JudgedDevice) bool { return d.At >= oldest }); err != nil {
			return deleted, err
		}
	}
	if limit.Size > 0 && total > limit.Size {
		return deleted, fmt.Errorf("store: %d bytes without the days before today, more than the limit of %d", total, limit.Size)
	}
	return deleted, nil
}

// dropDay deletes the files of a day. Its dumps go first and at once: if only some went, those that they had replaced would count again.
func (s *Store) dropDay(day part) error {
	gone := s.path(".deleted")
	if err := os.RemoveAll(gone); err != nil {
		return err
	}
	dir := func(table string) string { return path.Dir(s.path(day.name(table, "x"))) }
	if err := os.Rename(dir(Dumps), gone); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	failed := os.RemoveAll(gone)
	for _, table := range batchTables {
		failed = errors.Join(failed, os.RemoveAll(dir(table)), os.RemoveAll(dir(Quarantined+table)))
	}
	return failed
}
