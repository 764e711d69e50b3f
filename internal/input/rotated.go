package input

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rotatedNames matches the names of a log and of its rotated files, and captures the added
// suffix. A rotated file has the log's name with a number, a date or "old" at its end or
// before its extension, such as log.1, log.old, log-20261121, x-1.log.
func rotatedNames(path string) *regexp.Regexp {
	base, ext := filepath.Base(path), filepath.Ext(path)
	stem := strings.TrimSuffix(base, ext)
	const added = `(?:[.-]([0-9][0-9A-Za-z.:_+-]*|old))`
	return regexp.MustCompile(fmt.Sprintf(`^(?:%s%s?|%s%s%s)$`, regexp.QuoteMeta(base), added, regexp.QuoteMeta(stem), added, regexp.QuoteMeta(ext)))
}

// rotated is the log or one of its rotated files.
type rotated struct {
	path   string
	info   os.FileInfo
	number int // of log.1 and so on, or one of the constants below
}

const (
	theLog     = -1
	unnumbered = 1_000_000 // another suffix
	maxTries   = 100       // of list, for a total of about 5 s
)

// compare orders files by age. Files with dates sort before files with numbers: comparing
// times in one pair and numbers in another would not be a consistent order.
func (r rotated) compare(o rotated) int {
	return cmp.Or(cmp.Compare(o.number, r.number), r.info.ModTime().Compare(o.info.ModTime()), cmp.Compare(r.info.Name(), o.info.Name()))
}

// list returns the log and its rotated files that are not in past, the oldest first, without empty and
// compressed ones. It repeats until two successive lists are the same: a rotation in between
// would change the order.
func (l *follower) list() []rotated {
	files := l.listOnce()
	for try := range maxTries {
		before := files
		files = l.listOnce()
		if slices.EqualFunc(before, files, func(a, b rotated) bool { return a.path == b.path && os.SameFile(a.info, b.info) }) {
			break
		}
		time.Sleep(time.Duration(try) * time.Millisecond)
	}
	l.past = slices.DeleteFunc(l.past, func(p rotated) bool { return !slices.ContainsFunc(files, p.is) })
	files = slices.DeleteFunc(files, func(r rotated) bool { return slices.ContainsFunc(l.past, r.is) })
	slices.SortFunc(files, rotated.compare)
	return files
}

// is reports whether r and o are one file that was not written in between. The inode number of a
// removed file may be reused.
func (r rotated) is(o rotated) bool {
	return os.SameFile(r.info, o.info) && r.info.Size() == o.info.Size() && r.info.ModTime().Equal(o.info.ModTime())
}

// rotatedOf returns the files without the log.
func rotatedOf(files []rotated) []rotated {
	return slices.DeleteFunc(files, func(r rotated) bool { return r.number == theLog })
}

func (l *follower) listOnce() (files []rotated) {
	dir, names := filepath.Dir(l.path), rotatedNames(l.path)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		m := names.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		path, number := filepath.Join(dir, e.Name()), rotation(m[1]+m[2])
		info, err := os.Stat(path)
		if err != nil || info.Size() == 0 || !info.Mode().IsRegular() {
			continue // opening a FIFO would wait for a writer
		}
		if c, err := compressionOf(path); err == nil && (c == "" || number == theLog) {
			files = append(files, rotated{path, info, number})
		}
	}
	return files
}

// rotation returns the number of the rotated file with a suffix.
func rotation(suffix string) int {
	if suffix == "" {
		return theLog
	}
	n, err := strconv.Atoi(suffix)
	if err != nil {
		return unnumbered
	}
	return min(n, unnumbered)
}
