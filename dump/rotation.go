package dump

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// retired is a file that is not read again. While it is open, no other can get its
// inode number.
type retired struct {
	info os.FileInfo
	f    *os.File // nil of older ones
}

func (r *retired) close() {
	if r.f != nil {
		r.f.Close()
		r.f = nil
	}
}

// maxRetired is how many retired files are kept open.
const maxRetired = 64

// retire takes a file that is not read again.
func (l *follower) retire(f *os.File) {
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return
	}
	l.done = append(l.done, retired{info, f})
	if n := len(l.done) - maxRetired; n > 0 {
		l.done[n-1].close()
	}
}

// settle is how long the files are looked at while they are being renamed: names that
// are of different moments would put them in another order.
const settle = 10 * time.Second

// look opens the files beside the log that had its name, the oldest first, and the one
// that has it now, nil if there is none.
func (l *follower) look() (rotated []rotation, named *os.File) {
	var list []rotation
	settled := false
	began, pause := time.Now(), time.Millisecond
	for !settled && time.Since(began) < settle && l.ctx.Err() == nil {
		if list != nil {
			closeAll(list)
			time.Sleep(pause)
			pause = min(2*pause, 50*time.Millisecond)
		}
		list = l.list()
		again := l.list()
		settled = slices.EqualFunc(list, again, func(a, b rotation) bool { return a.suffix == b.suffix && os.SameFile(a.info, b.info) })
		closeAll(again)
	}
	if settled { // forget retired files that are gone
		l.done = slices.DeleteFunc(l.done, func(r retired) bool {
			gone := !slices.ContainsFunc(list, func(f rotation) bool { return os.SameFile(f.info, r.info) })
			if gone {
				r.close()
			}
			return gone
		})
	}
	slices.SortStableFunc(list, func(a, b rotation) int { return a.compare(&b) })
	for _, r := range list {
		switch {
		case r.suffix == "":
			named = r.f
		case compressionOfFile(r.f) != "":
			r.f.Close()
		default:
			r.known = l.knows(r.info)
			rotated = append(rotated, r)
		}
	}
	return rotated, named
}

// unread opens the files beside the log that had its name and were not read, the oldest
// first, and the one that has it now.
func (l *follower) unread() (files []part, named *os.File) {
	list, named := l.look()
	for _, r := range list {
		if r.known {
			r.f.Close()
		} else {
			files = append(files, part{f: r.f})
		}
	}
	return files, named
}

// copiedBefore opens the files beside the log that were not read, if the log still has
// its name: they came before it.
func (l *follower) copiedBefore() []part {
	files, named := l.unread()
	if named == nil {
		closeParts(files)
		return nil
	}
	defer named.Close()
	if here, err := l.f.Stat(); err == nil {
		if info, err := named.Stat(); err == nil && os.SameFile(here, info) {
			return files
		}
	}
	closeParts(files)
	return nil
}

// copies opens the files beside the log that hold what was written to it before it was
// truncated: the copy of what was being read, from there on, and others that were not read.
func (l *follower) copies() (files []part) {
	list, named := l.look()
	if named != nil {
		named.Close()
	}
	last := -1 // the newest that continues what was read
	for i, r := range list {
		if len(l.tail) > 0 && l.continues(r.f) {
			last = i
		}
	}
	for i, r := range list {
		switch {
		case i == last:
			files = append(files, part{f: r.f, at: l.at})
		case r.known:
			r.f.Close()
		default:
			files = append(files, part{f: r.f})
		}
	}
	return files
}

// knows reports whether a file has been read, is being read, or will be.
func (l *follower) knows(info os.FileInfo) bool {
	for _, p := range append([]part{l.part}, l.queue...) {
		if p.f != nil {
			if i, err := p.f.Stat(); err == nil && os.SameFile(i, info) {
				return true
			}
		}
	}
	return slices.ContainsFunc(l.done, func(r retired) bool { return os.SameFile(r.info, info) })
}

// rotation is a file that has the log's name, or had it.
type rotation struct {
	suffix string // "" if it has it
	known  bool   // read, or to be read
	info   os.FileInfo
	f      *os.File
}

// rotationSuffix is what rotation adds to a log's name: a number, a date, or "old".
var rotationSuffix = regexp.MustCompile(`^[.-]([0-9][0-9A-Za-z.:_+-]*|old)$`)

// list opens the log and all regular files whose names are its own with a suffix, at its
// end or before its extension: log.1, log.old, log-20261121, x-1.log.
func (l *follower) list() (list []rotation) {
	dir, base := filepath.Split(l.path)
	entries, _ := os.ReadDir(cmp.Or(dir, "."))
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	for _, e := range entries {
		suffix, found := strings.CutPrefix(e.Name(), base)
		if !found && ext != "" {
			if suffix, found = strings.CutPrefix(e.Name(), stem); found {
				suffix, found = strings.CutSuffix(suffix, ext)
			}
		}
		if e.Name() != base && (!found || !rotationSuffix.MatchString(suffix) || !e.Type().IsRegular()) {
			continue
		}
		if info, err := os.Stat(dir + e.Name()); err != nil || !info.Mode().IsRegular() {
			continue // to open a FIFO would wait for a writer
		}
		f, err := os.Open(dir + e.Name())
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			f.Close()
			continue
		}
		list = append(list, rotation{suffix: suffix, info: info, f: f})
	}
	return list
}

func closeAll(list []rotation) {
	for _, r := range list {
		r.f.Close()
	}
}

// compare orders by age. Dated files come before numbered ones, and the log itself is
// the newest: an order that mixed numbers and times would not be one.
func (r *rotation) compare(o *rotation) int {
	a, b := r.rank(), o.rank()
	if a != b {
		return cmp.Compare(a, b)
	}
	if a == numbered {
		a, _ := r.number()
		b, _ := o.number()
		return cmp.Compare(b, a) // the higher number is older
	}
	return cmp.Or(r.info.ModTime().Compare(o.info.ModTime()), cmp.Compare(r.suffix, o.suffix))
}

const (
	dated = iota
	numbered
	named
)

// rank returns what kind of name the file has.
func (r *rotation) rank() int {
	if r.suffix == "" {
		return named
	}
	if _, ok := r.number(); ok {
		return numbered
	}
	return dated
}

// number returns the number of a file that is numbered and not dated.
func (r *rotation) number() (int, bool) {
	n, err := strconv.Atoi(strings.TrimLeft(r.suffix, ".-"))
	return n, err == nil && n < 1_000_000
}
