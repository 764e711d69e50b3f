package store

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Snapshot is the list of files to read: the files of all complete batches. It contains each
// upload once, except for duplicates that compaction has not removed yet.
type Snapshot struct {
	Dumps, Facts, Paths, Frames []string
	JudgedPaths, JudgedDevices  []string
	Quarantined                 []string // damaged files that are left out
}

// part is the directory of the files of a day: day=DAY, or, of schema 1, build=BUILD/day=DAY.
type part struct{ dir, day string }

// split splits the name of a file of dumps, facts, paths, frames, or of a compaction.
func split(name string) (p part, base string, ok bool) {
	dir, file := path.Split(name)
	_, p.dir, _ = strings.Cut(strings.TrimSuffix(dir, "/"), "/")
	if p.day, ok = strings.CutPrefix(path.Base(p.dir), "day="); !ok {
		return p, "", false
	}
	base, _, ok = strings.Cut(file, path.Ext(file))
	return p, base, ok
}

func (p part) name(table, base, extension string) string {
	return path.Join(table, p.dir, base+extension)
}

// Snapshot lists the files. Days before since (YYYY-MM-DD, "" for none) are left out.
//
// Files that a compaction has replaced are deleted some time later. If a reader takes longer, a
// file is missing; it should then take another snapshot.
func (s *Store) Snapshot(ctx context.Context, since string) (*Snapshot, error) {
	parts, err := s.parts(ctx)
	if err != nil {
		return nil, err
	}
	var list Snapshot
	for _, p := range parts {
		if p.day < since {
			continue
		}
		for _, base := range p.live {
			list.Dumps = append(list.Dumps, p.name(Dumps, base, ".parquet"))
			list.Facts = append(list.Facts, p.name(Facts, base, ".parquet"))
			list.Paths = append(list.Paths, p.name(Paths, base, ".parquet"))
		}
	}
	frames, err := s.names(ctx, Frames+"/")
	if err != nil {
		return nil, err
	}
	for _, o := range frames {
		if _, _, ok := split(o.Name); ok {
			list.Frames = append(list.Frames, o.Name)
		}
	}
	bad, err := s.names(ctx, quarantine)
	if err != nil {
		return nil, err
	}
	for _, o := range bad {
		list.Quarantined = append(list.Quarantined, o.Name)
	}
	judged, _, _, err := s.spans(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range judged {
		list.JudgedPaths, list.JudgedDevices = append(list.JudgedPaths, n.name(JudgedPaths)), append(list.JudgedDevices, n.name(JudgedDevices))
	}
	return &list, nil
}

// Tables returns the files of each table, by its name.
func (s *Snapshot) Tables() map[string]*[]string {
	return map[string]*[]string{Dumps: &s.Dumps, Facts: &s.Facts, Paths: &s.Paths, Frames: &s.Frames, JudgedPaths: &s.JudgedPaths, JudgedDevices: &s.JudgedDevices}
}

// Files returns the files of all tables.
func (s *Snapshot) Files() []string {
	return slices.Concat(s.Dumps, s.Facts, s.Paths, s.Frames, s.JudgedPaths, s.JudgedDevices)
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
	Rows   int      `json:"rows,omitempty"` // facts in the files of the generation, 0 if not known
	Sum    uint32   `json:"sum,omitempty"`  // checksum, 0 in lists of earlier versions
}

func (c *compaction) sum() uint32 {
	return max(1, Sum(fmt.Append(nil, c.Inputs, c.Rows)))
}

// generation returns the base name of the files that a compaction makes.
func generation(n int) string { return fmt.Sprintf("compacted-%06d", n) }

// parts lists the parts of the store.
func (s *Store) parts(ctx context.Context) ([]contents, error) {
	// List compactions before dumps: if a compaction ends between the two listings, its
	// result is ignored, and its inputs are read.
	lists, err := s.names(ctx, compactions+"/")
	if err != nil {
		return nil, err
	}
	dumps, err := s.names(ctx, Dumps+"/")
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
		list, err := s.compaction(ctx, o.Name)
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
		return strings.Compare(a.dir, b.dir)
	})
	return list, nil
}

// compaction returns a list of replaced files. Lists never change, so they are cached.
func (s *Store) compaction(ctx context.Context, name string) (*compaction, error) {
	s.mu.Lock()
	c := s.lists[name]
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	data, err := s.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	c = &compaction{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("store: %s: %w", name, err)
	}
	if c.Sum != 0 && c.Sum != c.sum() {
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

// Uploads holds the uploads and the last dumps of the devices of a store.
type Uploads struct {
	sums map[[2]string]bool // by device and sum
	last map[string]Dump    // by device
}

// Uploads reads all files of dumps.
func (s *Store) Uploads(ctx context.Context) (*Uploads, error) {
	list, err := s.Snapshot(ctx, "")
	if err != nil {
		return nil, err
	}
	u := &Uploads{map[[2]string]bool{}, map[string]Dump{}}
	for _, name := range list.Dumps {
		rows, err := Read[Dump](ctx, s, name)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			u.sums[[2]string{r.Device, r.Upload}] = true
			if l := u.last[r.Device]; r.Boot > l.Boot || r.Boot == l.Boot && r.Dump >= l.Dump {
				u.last[r.Device] = r
			}
		}
	}
	return u, nil
}

// Has reports whether the store has an upload.
func (u *Uploads) Has(_ context.Context, device, sum string) (bool, error) {
	return u.sums[[2]string{device, sum}], nil
}

// Last returns the last dump of a device, a zero one if there is none.
func (u *Uploads) Last(_ context.Context, device string) (Dump, error) { return u.last[device], nil }
