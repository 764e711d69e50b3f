package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Snapshot is the list of files to read, by table: the files of all complete batches. It contains each
// upload once, except for duplicates that compaction has not removed yet. Under Quarantined, it has the damaged files that are left out.
type Snapshot map[string][]string

// part is a day, whose files have their own directory in each table.
type part string

// split splits the name of a file of dumps, facts, paths, frames, or of a compaction.
func split(name string) (p part, base string, ok bool) {
	dir, file := path.Split(name)
	day, ok := strings.CutPrefix(path.Base(dir), "day=")
	return part(day), strings.TrimSuffix(file, path.Ext(file)), ok
}

func (p part) name(table, base, extension string) string {
	return path.Join(table, "day="+string(p), base+extension)
}

// Snapshot lists the files. Days before since (YYYY-MM-DD, "" for none) are left out.
//
// Files that a compaction has replaced are deleted some time later. If a reader takes longer, a
// file is missing; it should then take another snapshot.
func (s *Store) Snapshot(ctx context.Context, since string) (Snapshot, error) {
	parts, err := s.parts()
	if err != nil {
		return nil, err
	}
	list := Snapshot{}
	for _, p := range parts {
		for _, base := range p.live {
			for _, table := range batchTables {
				if string(p.part) >= since {
					list[table] = append(list[table], p.name(table, base, ".parquet"))
				}
			}
		}
	}
	for _, other := range []string{Frames, Quarantined} {
		files, err := s.names(strings.TrimSuffix(other, "/") + "/")
		if err != nil {
			return nil, err
		}
		for _, o := range files {
			list[other] = append(list[other], o.Name)
		}
	}
	judged, _, _, err := s.spans()
	for _, n := range judged {
		for _, table := range []string{JudgedPaths, JudgedDevices} {
			list[table] = append(list[table], n.name(table))
		}
	}
	return list, err
}

// contents holds the files of a part: the files to read, and the files that were replaced.
type contents struct {
	part
	live     []string
	replaced []string       // the result of a compaction after its inputs, which would be read again without it
	last     int            // generation of the last compaction, 0 if there is none
	since    time.Time      // of its list
	rows     map[string]int // facts in the files that compactions made, if known; also of those that are not finished
}

// compactions is the prefix of the lists of replaced files.
const compactions = "compactions"

// compaction is the content of such a list. For each generation, only one process writes it,
// before it writes the files of the generation. The list counts once the file of dumps of this
// generation exists.
type compaction struct {
	Inputs []string `json:"inputs"`
	Rows   int      `json:"rows"` // facts in the files of the generation
	Sum    uint32   `json:"sum"`  // checksum
}

func (c *compaction) sum() uint32 { return Sum(fmt.Append(nil, c.Inputs, c.Rows)) }

// generation returns the base name of the files that a compaction makes.
func generation(n int) string { return fmt.Sprintf("compacted-%06d", n) }

// parts lists the parts of the store.
func (s *Store) parts() ([]contents, error) {
	// List compactions before dumps: if a compaction ends between the two listings, its
	// result is ignored, and its inputs are read.
	lists, err := s.names(compactions + "/")
	if err != nil {
		return nil, err
	}
	dumps, err := s.names(Dumps + "/")
	if err != nil {
		return nil, err
	}
	byPart := map[part]*contents{}
	for _, o := range dumps {
		if p, base, ok := split(o.Name); ok {
			if byPart[p] == nil {
				byPart[p] = &contents{part: p, rows: map[string]int{}}
			}
			byPart[p].live = append(byPart[p].live, base)
		}
	}
	for _, o := range lists {
		p, base, ok := split(o.Name)
		n := 0
		if _, err := fmt.Sscanf(base, "%d", &n); !ok || err != nil || byPart[p] == nil {
			continue
		}
		c := byPart[p]
		if n > c.last {
			c.last, c.since = n, o.Modified
		}
		if c.rows[generation(n)] = 0; !slices.Contains(c.live, generation(n)) && !slices.Contains(c.replaced, generation(n)) {
			continue // not finished
		}
		list, err := s.compaction(o.Name)
		if err != nil {
			return nil, err
		}
		c.rows[generation(n)] = list.Rows
		c.live = slices.DeleteFunc(c.live, func(base string) bool {
			replaced := slices.Contains(list.Inputs, base)
			if replaced {
				c.replaced = append(c.replaced, base)
			}
			return replaced
		})
	}
	var list []contents
	for _, c := range byPart {
		// The list of a compaction that is not known is newer than lists. Its inputs are read, so ignore its result.
		c.live = slices.DeleteFunc(c.live, func(base string) bool {
			_, known := c.rows[base]
			return strings.HasPrefix(base, "compacted-") && !known
		})
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b contents) int {
		return cmp.Compare(a.part, b.part)
	})
	return list, nil
}

// compaction returns a list of replaced files. Lists never change, so they are cached.
func (s *Store) compaction(name string) (*compaction, error) {
	s.mu.Lock()
	c := s.lists[name]
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	data, err := s.Read(name)
	if err != nil {
		return nil, err
	}
	c = &compaction{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("store: %s: %w", name, err)
	}
	if c.Sum != c.sum() {
		return nil, fmt.Errorf("store: %s: %w", name, ErrSum)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists == nil {
		s.lists = map[string]*compaction{}
	}
	s.lists[name] = c
	return c, nil
}
