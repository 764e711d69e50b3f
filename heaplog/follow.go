package heaplog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

const (
	followPoll     = 20 * time.Millisecond // between two looks at the end of a file
	followPatience = 3                     // looks at the end of a renamed file, which may still be written
	followLast     = time.Second           // for reading on when the context is done
	followTail     = 4 << 10               // bytes in front of the place that tell a file from another
	maxOpen        = 64                    // files that were read and stay open: their inode numbers stay theirs
)

// follower reads a log that is written and rotated. When the file was renamed, it reads the
// file to its end, then the files that had its name since and are still beside it, such as
// log.1 and log.2, and then the one that has the name. When the file was truncated, it reads
// the rest from the copy beside it, if there is one, and then the file from its start.
type follower struct {
	ctx   context.Context
	path  string
	names *regexp.Regexp // of the log and its rotated files
	idle  func() error   // called at each look that finds nothing
	note  func(string)   // called if lines may be lost

	part              // being read
	tail    []byte    // what was read of it last
	queue   []part    // to be read next
	done    []part    // not to be read again
	looks   int       // at the end of part, since there is a queue
	until   time.Time // when reading ends, once the context is done
	compare [followTail]byte
}

// part is a file from an offset on.
type part struct {
	f    *os.File
	info os.FileInfo
	at   int64
	copy bool // a copy of what f has may have been read before f
}

// follow opens a log and begins at its start.
func follow(ctx context.Context, path string, idle func() error, note func(string)) (*follower, error) {
	l := &follower{ctx: ctx, path: path, names: rotatedNames(path), idle: idle, note: note}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s: is not a regular file, expected one to follow", path))
	}
	l.done = l.look().unread // what was rotated before is not read
	i := slices.IndexFunc(l.done, func(p part) bool { return filepath.Base(p.f.Name()) == filepath.Base(path) })
	if i < 0 {
		l.Close()
		f, err := os.Open(path)
		f.Close()
		return nil, cmp.Or(err, fmt.Errorf("%s: is compressed, expected a plain log to follow", path))
	}
	l.part = l.done[i]
	l.done = slices.Delete(l.done, i, i+1)
	return l, nil
}

// Close closes all files.
func (l *follower) Close() error {
	for _, p := range l.known() {
		p.f.Close() // a second time is no matter
	}
	return nil
}

// known returns all files that were read, or will be, the newest last.
func (l *follower) known() []part { return slices.Concat(l.done, []part{l.part}, l.queue) }

// Read returns io.EOF when the context is done and all was read.
func (l *follower) Read(p []byte) (int, error) {
	for {
		ends := l.ctx.Err() != nil
		if ends && l.until.IsZero() {
			l.until = time.Now().Add(followLast)
		}
		n, err := l.f.ReadAt(p, l.at)
		again := true
		switch {
		case n == 0 && err != io.EOF:
			return 0, err
		case n > 0 && !l.has(l.f): // truncated, and grown since
			l.restart(false)
		case n > 0 && l.at == 0 && !l.copy && l.restart(true):
		case n > 0 && !(ends && time.Now().After(l.until)):
			l.at += int64(n)
			l.tail = append(l.tail, p[max(0, n-followTail):n]...)
			l.tail = l.tail[max(0, len(l.tail)-followTail):]
			return n, nil
		case n == 0:
			again = l.turn()
		}
		if again && ends && time.Now().After(l.until) {
			return 0, l.ctx.Err()
		}
		if again {
			continue
		}
		if err := l.idle(); err != nil || ends {
			return 0, cmp.Or(err, io.EOF)
		}
		select {
		case <-l.ctx.Done(): // what was written before is still read
		case <-time.After(followPoll):
		}
	}
}

// has reports whether f has in front of the place what was read there.
func (l *follower) has(f *os.File) bool {
	b := l.compare[:len(l.tail)]
	n, _ := f.ReadAt(b, l.at-int64(len(l.tail)))
	return n == len(b) && bytes.Equal(b, l.tail)
}

// size returns the size of the file now, 0 if it is not known.
func (p part) size() int64 {
	info, err := p.f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

func (p part) more() bool { return p.size() > p.at }

// turn looks, at the end of the file, whether the log goes on there or elsewhere.
func (l *follower) turn() (more bool) {
	if l.size() < l.at {
		return l.restart(false)
	}
	known := l.known()
	if named, err := os.Stat(l.path); err == nil && !os.SameFile(named, known[len(known)-1].info) {
		found := l.look()
		l.queue = append(l.queue, found.unread...)
		if len(found.unread) > 0 && found.gone {
			l.note(l.path + ": the file that was read was removed: if other files had its name since, their lines are lost")
		}
	}
	if len(l.queue) == 0 {
		l.looks = 0
		return l.more()
	}
	l.looks++
	if len(l.queue) < 2 && l.looks < followPatience || !slices.ContainsFunc(l.queue, part.more) {
		return l.more() // as long as what follows is empty, this file may be written
	}
	if !l.more() {
		l.next()
	}
	return true
}

// next turns to the next part.
func (l *follower) next() {
	last := l.part
	l.part, l.queue, l.looks = l.queue[0], l.queue[1:], 0
	if last.f != l.f && !slices.ContainsFunc(l.queue, func(p part) bool { return p.f == last.f }) {
		l.done = append(l.done, last)
		if n := len(l.done) - maxOpen; n > 0 {
			l.done[n-1].f.Close()
		}
	}
	if l.copy {
		if l.at = last.at; l.has(l.f) {
			return // not yet truncated
		}
		l.at = 0
	}
	if l.at == 0 {
		l.tail = nil
	}
}

// restart turns to the start of the file, which was truncated, but first to the copy of what
// it had, from the place on, and to other files that were not read. With first, nothing was
// read of the file; it was truncated only if there are such files.
func (l *follower) restart(first bool) bool {
	found := l.look()
	files, rest := found.unread, found.rest
	if first && (len(files) == 0 || !found.named) {
		for _, p := range files {
			p.f.Close()
		}
		return false
	}
	if len(files) == 0 && rest == nil {
		l.note(l.path + ": was truncated: lines that were written to it just before may be lost")
	}
	if rest != nil {
		files = slices.Insert(files, 0, part{f: rest.f, info: rest.info, at: l.at})
	}
	l.queue = slices.Concat(files, []part{{f: l.f, info: l.info, copy: first}}, l.queue)
	l.next()
	return true
}

// found is the log and its rotated files at one moment.
type found struct {
	unread []part // files that are not known, the oldest first
	rest   *part  // the newest file that has what was read, other than the one being read
	gone   bool   // the newest known file is not there any more
	named  bool   // the file being read has the log's name
}

// look finds the log and its rotated files.
func (l *follower) look() (out found) {
	known := l.known()
	there := make([]bool, len(known))
	for _, r := range l.list() {
		i := slices.IndexFunc(known, func(p part) bool { return p.f != nil && os.SameFile(p.info, r.info) })
		if i >= 0 {
			there[i] = true
		}
		switch {
		case i >= 0 && known[i].f == l.f:
			out.named = r.number < 0
			r.f.Close()
		case compressionOf(r.f) != "":
			r.f.Close()
		case len(l.tail) > 0 && l.has(r.f):
			if out.rest != nil {
				out.rest.f.Close()
			}
			out.rest = &r.part
		case i >= 0:
			r.f.Close()
		default:
			out.unread = append(out.unread, r.part)
		}
	}
	for i := len(l.done) - 1; i >= 0; i-- {
		if !there[i] {
			l.done[i].f.Close()
			l.done = slices.Delete(l.done, i, i+1)
		}
	}
	out.gone = !there[len(known)-1]
	return out
}
