package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// Snapshot is the list of files to read, by table: the files of all complete batches. It contains each
// upload once, except for duplicates that compaction has not removed yet. Under Quarantined, it has the damaged files that are left out.
type Snapshot map[string][]string

// part is a day, whose files have their own directory in each table, or "" for all files of the judgements.
type part string

// split splits the name of a file of a table, or of a damaged one.
func split(name string) (p part, base string) {
	dir, file := path.Split(name)
	day, ok := strings.CutPrefix(path.Base(dir), "day=")
	if !ok {
		day = ""
	}
	return part(day), strings.TrimSuffix(file, path.Ext(file))
}

func (p part) name(table, base string) string {
	if p != "" {
		table = path.Join(table, "day="+string(p))
	}
	return path.Join(table, base+".parquet")
}

// Snapshot lists the files. Days before since (YYYY-MM-DD, "" for none) are left out.
//
// Files that a compaction has replaced are deleted some time later. If a reader takes longer, a
// file is missing; it should then take another snapshot.
func (s *Store) Snapshot(ctx context.Context, since string) (Snapshot, error) {
	list := Snapshot{}
	for _, tables := range [][]string{batchTables, judgedTables} {
		parts, err := s.parts(tables[0])
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			for _, base := range p.live {
				for _, table := range tables {
					if p.part == "" || string(p.part) >= since {
						list[table] = append(list[table], p.name(table, base))
					}
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
	return list, nil
}

// contents holds the files of a part: the files to read, and the files that were replaced.
type contents struct {
	part
	live     []string
	replaced []string
	since    time.Time // of the last compaction
}

// compacted begins the names of the files that a compaction makes; see compactedName. The metadata of the first of its tables has, under replacesKey,
// a JSON list of the files that it replaces: from the moment that it has its name, readers leave them out.
const (
	compacted   = "compacted-"
	replacesKey = "lwsbt.replaces"
)

// parts lists the parts that have files of a table.
func (s *Store) parts(table string) (list []contents, err error) {
	files, err := s.names(table + "/") // sorted, so by part
	if err != nil {
		return nil, err
	}
	replaced := map[string]bool{}
	for _, o := range files {
		p, base := split(o.Name)
		if n := len(list); n == 0 || list[n-1].part != p {
			list = append(list, contents{part: p})
		}
		c := &list[len(list)-1]
		c.live = append(c.live, base)
		if strings.HasPrefix(base, compacted) {
			c.since = time.UnixMicro(max(c.since.UnixMicro(), o.Modified.UnixMicro()))
			for _, other := range s.replaces(o.Name) {
				replaced[p.name(table, other)] = true
			}
		}
	}
	for i := range list {
		c := &list[i]
		c.live = slices.DeleteFunc(c.live, func(base string) bool {
			old := replaced[c.name(table, base)]
			if old {
				c.replaced = append(c.replaced, base)
			}
			return old
		})
	}
	slices.SortFunc(list, func(a, b contents) int { return cmp.Compare(a.part, b.part) })
	return list, nil
}

// replaces returns the files that a file replaces, none if it cannot be read: then it is damaged, and no answer has it.
func (s *Store) replaces(name string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, known := s.lists[name]
	if known {
		return list
	}
	data, err := s.Read(name)
	if err != nil || Check(data) != nil {
		return nil
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)), parquet.SkipPageIndex(true))
	if err != nil {
		return nil
	}
	text, _ := f.Lookup(replacesKey)
	json.Unmarshal([]byte(text), &list)
	s.lists[name] = list
	return list
}
