package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Store is a directory of Parquet files:
//
//	TABLE/day=YYYY-MM-DD/NAME.parquet
//
// The day is the day of receipt, UTC. A file never changes.
type Store struct {
	dir string // absolute

	dropped map[string]part // by label: the day before which dropLabels has searched

	mu    sync.Mutex
	lists map[string][]string // see replaces
}

// Open opens a store: a directory, which is created if it does not exist.
func Open(where string) (*Store, error) {
	dir, err := filepath.Abs(where)
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", where, err)
	}
	return &Store{dir: dir, dropped: map[string]part{}, lists: map[string][]string{}}, nil
}

// Dir returns the directory of the files.
func (s *Store) Dir() string { return s.dir }

// Batch holds rows that become visible together. Its name determines the file names, so a
// repeated Put of the same batch is harmless.
type Batch struct {
	Name  string
	Day   time.Time // of receipt
	Dumps []Dump
	Facts []Fact
	Paths []Path
}

// batchTables are the tables of a batch, in the order in which a file of each is deleted: without the dumps, readers ignore the
// others.
var batchTables = []string{Dumps, Facts, Paths}

// Putter writes batches to a store, or to the tables of ClickHouse.
type Putter interface {
	Put(ctx context.Context, b *Batch) error
}

// Put writes a batch, if it has dumps: one file of each table. The file of dumps is
// written last; without it a reader ignores the other files. Put sorts the rows.
func (s *Store) Put(_ context.Context, b *Batch) error {
	if len(b.Dumps) == 0 {
		return nil
	}
	return s.putIn(dayPart(b.Day), b, "")
}

// putIn writes a batch into a part. replaces is "", or the metadata of a file of dumps that replaces others.
func (s *Store) putIn(p part, b *Batch, replaces string) error {
	b.sort()
	if err := write(s, p.name(Paths, b.Name), b.Paths, ""); err != nil {
		return err
	}
	if err := write(s, p.name(Facts, b.Name), b.Facts, ""); err != nil {
		return err
	}
	return write(s, p.name(Dumps, b.Name), b.Dumps, replaces)
}

func dayPart(t time.Time) part { return part(t.UTC().Format(time.DateOnly)) }

// Escape returns s in a form that can be part of a file name: as part of the path of a URL, and without '.' at the beginning.
func Escape(s string) string {
	s = url.PathEscape(s)
	if strings.HasPrefix(s, ".") {
		s = "%2E" + s[1:]
	}
	return s
}

// sort sorts the rows by build, those of a build in the orders documented for their types.
func (b *Batch) sort() {
	slices.SortFunc(b.Dumps, func(x, y Dump) int {
		return cmp.Or(cmp.Compare(x.Build, y.Build), cmp.Compare(x.Device, y.Device), cmp.Compare(x.Boot, y.Boot), cmp.Compare(x.Dump, y.Dump))
	})
	slices.SortFunc(b.Facts, func(x, y Fact) int {
		return cmp.Or(cmp.Compare(x.Build, y.Build), cmp.Compare(x.Device, y.Device), cmp.Compare(x.Path, y.Path), cmp.Compare(x.Boot, y.Boot), cmp.Compare(x.Dump, y.Dump))
	})
	slices.SortFunc(b.Paths, func(x, y Path) int {
		return cmp.Or(cmp.Compare(x.Build, y.Build), cmp.Compare(x.Path, y.Path))
	})
	b.Paths = slices.CompactFunc(b.Paths, func(x, y Path) bool { return x.Build == y.Build && x.Path == y.Path })
}

// rowsPerGroup is the number of rows that one processor of a query engine reads at once.
const rowsPerGroup = 1 << 17

// write writes rows as one file, durably. replaces is the value of replacesKey in its metadata.
func write[T any](s *Store, name string, rows []T, replaces string) error {
	var b bytes.Buffer
	p := parquet.NewGenericWriter[T](&b, parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault}), parquet.MaxRowsPerRowGroup(rowsPerGroup),
		parquet.KeyValueMetadata(SchemaKey, Schema), parquet.KeyValueMetadata(sumKey, noSum), parquet.KeyValueMetadata(replacesKey, replaces))
	_, err := p.Write(rows)
	if err := cmp.Or(err, p.Close()); err != nil {
		return fmt.Errorf("store: %s: %w", name, err)
	}
	seal(b.Bytes())
	return s.put(name, b.Bytes())
}
