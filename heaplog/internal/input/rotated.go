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
	part
	number int // of log.1 and so on; -1: the log; unnumbered: another suffix
}

const (
	unnumbered = 1_000_000
	maxTries   = 100 // of list, for a total of about 5 s
)

// compare orders files by age. Files with dates sort before files with numbers: comparing
// times in one pair and numbers in another would not be a consistent order.
func (r rotated) compare(o rotated) int {
	return cmp.Or(cmp.Compare(o.number, r.number), r.info.ModTime().Compare(o.info.ModTime()), cmp.Compare(r.info.Name(), o.info.Name()))
}

// list opens the log and its rotated files, the oldest first. It repeats until two
// successive lists are the same: a rotation in between would change the order.
func (l *follower) list() []rotated {
	for tries := range maxTries {
		list, again := l.listOnce(), l.listOnce()
		same := slices.EqualFunc(list, again, func(a, b rotated) bool { return a.number == b.number && os.SameFile(a.info, b.info) })
		for _, r := range again {
			r.f.Close()
		}
		if same || tries == maxTries-1 {
			slices.SortStableFunc(list, rotated.compare)
			return list
		}
		for _, r := range list {
			r.f.Close()
		}
		time.Sleep(time.Duration(tries+1) * time.Millisecond)
	}
	return nil
}

func (l *follower) listOnce() (list []rotated) {
	dir := filepath.Dir(l.path)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		m := l.names.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue // opening a FIFO would wait for a writer
		}
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		number, err := strconv.Atoi(m[1] + m[2])
		switch {
		case m[1]+m[2] == "":
			number = -1
		case err != nil:
			number = unnumbered
		}
		r := rotated{part{f: f}, min(number, unnumbered)}
		if r.info, err = f.Stat(); err == nil {
			list = append(list, r)
		}
	}
	return list
}
