package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	"gocloud.dev/blob/fileblob"
	_ "gocloud.dev/blob/gcsblob" // gs://
	_ "gocloud.dev/blob/memblob" // mem://
	_ "gocloud.dev/blob/s3blob"  // s3://
	"gocloud.dev/gcerrors"
)

// Store is a directory or bucket of Parquet files:
//
//	TABLE/build=BUILD/day=YYYY-MM-DD/NAME.parquet
//
// The day is the day of receipt, UTC. A file never changes.
type Store struct {
	bucket *blob.Bucket
	dir    string // of the files, "" if they are not on this machine
	// Retries is the number of times that a failed operation is repeated. Open sets it to 8.
	Retries int
	// Wait is the time before the first repetition. It doubles with each repetition.
	Wait time.Duration

	mu    sync.Mutex
	lists map[string]*compaction // by name
}

// Open opens a store: a directory, which is created if it does not exist, or the URL of a
// bucket, such as s3://fleet?region=eu-west-1, gs://fleet or azblob://fleet (see
// gocloud.dev/blob).
func Open(ctx context.Context, where string) (*Store, error) {
	if strings.Contains(where, "://") && !strings.HasPrefix(where, "file://") {
		b, err := blob.OpenBucket(ctx, where)
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", where, err)
		}
		return New(b), nil
	}
	dir, err := filepath.Abs(strings.TrimPrefix(where, "file://"))
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", where, err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	// A temporary file must be in the same directory so that it can be renamed. Attributes are not used.
	b, err := fileblob.OpenBucket(dir, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", where, err)
	}
	s := New(b)
	s.dir = dir
	return s, nil
}

// New returns the store in a bucket, which Close closes.
func New(b *blob.Bucket) *Store { return &Store{bucket: b, Retries: 8, Wait: 50 * time.Millisecond} }

// Close closes the bucket.
func (s *Store) Close() error { return s.bucket.Close() }

// Dir returns the directory of the files, "" if they are not on this machine.
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

// Put writes a batch: for each build one file of each table. The file of dumps is
// written last; without it a reader ignores the other files. Put sorts the rows.
func (s *Store) Put(ctx context.Context, b *Batch) error {
	b.sort()
	day := b.Day.UTC().Format(time.DateOnly)
	for _, build := range b.builds() {
		name := func(table string) string { return Name(table, build, day, b.Name) }
		if err := write(ctx, s, name(Paths), of(b.Paths, func(r Path) bool { return r.Build == build })); err != nil {
			return err
		}
		if err := write(ctx, s, name(Facts), of(b.Facts, func(r Fact) bool { return r.Build == build })); err != nil {
			return err
		}
		if err := write(ctx, s, name(Dumps), of(b.Dumps, func(r Dump) bool { return r.Build == build })); err != nil {
			return err
		}
	}
	return nil
}

// Name returns the name of a file. It escapes the build, which comes from devices.
func Name(table, build, day, name string) string {
	return path.Join(table, "build="+Escape(build), "day="+day, name+".parquet")
}

// Escape returns s in a form that can be part of a file name. It keeps letters, digits, '-', '_'
// and, except at the beginning, '.'; other bytes become %XX.
func Escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// builds returns the builds of the dumps in the batch, sorted.
func (b *Batch) builds() []string {
	var list []string
	for _, d := range b.Dumps {
		list = append(list, d.Build)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// sort sorts the rows in the orders documented for their types.
func (b *Batch) sort() {
	slices.SortStableFunc(b.Dumps, func(x, y Dump) int {
		return cmp.Or(cmp.Compare(x.Device, y.Device), cmp.Compare(x.Boot, y.Boot), cmp.Compare(x.Dump, y.Dump))
	})
	slices.SortStableFunc(b.Facts, func(x, y Fact) int {
		return cmp.Or(cmp.Compare(x.Device, y.Device), cmp.Compare(x.Path, y.Path), cmp.Compare(x.Boot, y.Boot), cmp.Compare(x.Dump, y.Dump))
	})
	slices.SortStableFunc(b.Paths, func(x, y Path) int {
		return cmp.Or(cmp.Compare(x.Build, y.Build), cmp.Compare(x.Path, y.Path))
	})
	b.Paths = slices.CompactFunc(b.Paths, func(x, y Path) bool { return x.Build == y.Build && x.Path == y.Path })
}

func of[T any](rows []T, keep func(T) bool) []T {
	var list []T
	for _, r := range rows {
		if keep(r) {
			list = append(list, r)
		}
	}
	return list
}

// rowsPerGroup is the number of rows that one processor of a query engine reads at once.
const rowsPerGroup = 1 << 17

// write writes rows as one file, durably if it is on this machine.
func write[T any](ctx context.Context, s *Store, name string, rows []T) error {
	return s.put(ctx, name, false, func(w io.Writer) error {
		p := parquet.NewGenericWriter[T](w, parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault}),
			parquet.MaxRowsPerRowGroup(rowsPerGroup), parquet.KeyValueMetadata("lwsbt.schema", Schema))
		if _, err := p.Write(rows); err != nil {
			return err
		}
		return p.Close()
	})
}

// ErrExists is returned by an attempt to write an object that must be new, but exists.
var ErrExists = errors.New("the object exists")

// put writes an object. If once is set and the object exists, put returns ErrExists.
func (s *Store) put(ctx context.Context, name string, once bool, fill func(io.Writer) error) error {
	err := s.retry(ctx, func() error {
		attempt, cancel := context.WithCancel(ctx)
		defer cancel() // if the writer is not closed, the object is not created
		w, err := s.bucket.NewWriter(attempt, name, &blob.WriterOptions{IfNotExist: once, DisableContentTypeDetection: true, ContentType: "application/octet-stream"})
		if err != nil {
			return err
		}
		if err := fill(w); err != nil {
			cancel()
			w.Close()
			return err
		}
		return w.Close()
	})
	if once && gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return fmt.Errorf("%s: %w", name, ErrExists)
	}
	if err != nil {
		return fmt.Errorf("store: %s: %w", name, err)
	}
	return s.sync(name)
}

// sync makes an object durable, if it is a file: the file and the directories above it.
func (s *Store) sync(name string) error {
	if s.dir == "" {
		return nil
	}
	at := filepath.Join(s.dir, filepath.FromSlash(name))
	for {
		if err := SyncPath(at); err != nil {
			return err
		}
		if at == s.dir {
			return nil
		}
		at = filepath.Dir(at)
	}
}

// SyncPath makes a file or the names in a directory durable.
func SyncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// retry calls do, and repeats it if it fails, except for errors that another attempt cannot
// change.
func (s *Store) retry(ctx context.Context, do func() error) (err error) {
	wait := s.Wait
	for try := 0; ; try++ {
		if err = do(); err == nil || try >= s.Retries || ctx.Err() != nil {
			return err
		}
		switch gcerrors.Code(err) {
		case gcerrors.NotFound, gcerrors.FailedPrecondition, gcerrors.InvalidArgument, gcerrors.PermissionDenied:
			return err
		}
		if errors.Is(err, os.ErrPermission) || Full(err) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		wait *= 2
	}
}

// read returns the content of an object.
func (s *Store) read(ctx context.Context, name string) (data []byte, err error) {
	err = s.retry(ctx, func() error {
		data, err = s.bucket.ReadAll(ctx, name)
		return err
	})
	return data, err
}

// Read returns the content of a file of a [Snapshot].
func (s *Store) Read(ctx context.Context, name string) ([]byte, error) {
	data, err := s.read(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", name, err)
	}
	return data, nil
}

// names returns the names of the objects below a prefix, sorted.
func (s *Store) names(ctx context.Context, prefix string) (list []Object, err error) {
	err = s.retry(ctx, func() error {
		list = nil
		it := s.bucket.List(&blob.ListOptions{Prefix: prefix})
		for {
			o, err := it.Next(ctx)
			if err == io.EOF {
				return nil
			}
			if gcerrors.Code(err) == gcerrors.NotFound {
				return errMoved
			}
			if err != nil {
				return err
			}
			if strings.HasSuffix(o.Key, ".attrs") || strings.HasPrefix(path.Base(o.Key), ".") {
				continue
			}
			list = append(list, Object{o.Key, o.Size, o.ModTime})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", prefix, err)
	}
	return list, nil
}

// errMoved is returned by the listing of a directory if a file was renamed meanwhile.
var errMoved = errors.New("a file was renamed while its directory was listed")

// Object is a file of a store.
type Object struct {
	Name     string
	Size     int64 // in bytes
	Modified time.Time
}

func (s *Store) delete(ctx context.Context, name string) error {
	err := s.retry(ctx, func() error { return s.bucket.Delete(ctx, name) })
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return err
}
