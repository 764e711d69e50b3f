package clickhouse

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// filesPerStatement is below glob_expansion_max_elements of ClickHouse.
const filesPerStatement = 500

// Load returns the statements that insert the files of a store into the tables. The server must be able to read
// the files: those of a directory below its user_files_path, or the objects of a bucket with credentials of its own.
// Statements that are run again change nothing.
func Load(ctx context.Context, s *store.Store) (list []string, err error) {
	files, err := s.Snapshot(ctx, "")
	if err != nil {
		return nil, err
	}
	// The dumps are last, as in Put.
	for _, t := range []struct {
		name  string
		files []string
	}{{store.Paths, files.Paths}, {store.Facts, files.Facts}, {store.Dumps, files.Dumps}, {store.Frames, files.Frames}} {
		for begin := 0; begin < len(t.files); {
			dir := path.Dir(t.files[begin])
			var names []string
			end := begin
			for ; end < len(t.files) && end-begin < filesPerStatement && path.Dir(t.files[end]) == dir; end++ {
				names = append(names, path.Base(t.files[end]))
			}
			list = append(list, load(s, named(t.name), dir, names))
			begin = end
		}
	}
	return list, nil
}

// load returns a statement for files of a directory, which are of a day.
func load(s *store.Store, t *table, dir string, names []string) string {
	var columns, structure []string
	for _, c := range t.columns() {
		columns, structure = append(columns, QuoteName(c.name)), append(structure, c.name+" "+c.kind)
	}
	into := strings.Join(columns, ", ")
	from := into
	if t.expires {
		_, day, _ := strings.Cut(dir, "/day=")
		into, from = into+", day", from+", toDate("+Quote(day)+")"
	}
	base := names[0]
	if len(names) > 1 {
		base = "{" + strings.Join(names, ",") + "}"
	}
	source := "file(" + Quote(path.Join(s.Dir(), dir, base))
	if s.Dir() == "" {
		source = "s3(" + Quote(s.URL()+strings.ReplaceAll(path.Join(dir, base), "%", "%25"))
	}
	// With the structure, columns that files of schema 1 lack are empty.
	return fmt.Sprintf("insert into %s (%s)\nselect %s\nfrom %s, Parquet, %s)\nsettings use_hive_partitioning = 0", t.name, into, from, source, Quote(strings.Join(structure, ", ")))
}
