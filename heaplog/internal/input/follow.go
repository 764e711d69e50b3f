package input

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
	followPoll     = 20 * time.Millisecond // between two checks for new data
	followPatience = 3                     // checks at the end of a renamed file, which another program may still write
	followLast     = time.Second           // limit for reading the rest once the context is done
	followTail     = 4 << 10               // bytes before the offset, compared to recognize the content of a file
	maxOpen        = 64                    // files already read that stay open, so that their inode numbers are not reused
)

// follower reads a log that another program writes and rotates. After the file was renamed,
// the follower reads it to its end, then the newer rotated files beside it, such as log.1
// and log.2, and then the file that now has the log's name. After the file was truncated,
// the follower reads the rest from a copy beside it, if there is one, and then the file
// from its start.
type follower struct {
	ctx   context.Context
	path  string
	names *regexp.Regexp // of the log and its rotated files
	idle  func() error   // called after each check that finds no new data
	note  func(string)   // called if lines may be lost

	part              // the part being read
	tail    []byte    // the last bytes read from part
	queue   []part    // parts to read next
	done    []part    // parts already read, or to be skipped
	looks   int       // checks at the end of part since queue is not empty
	until   time.Time // deadline for reading, once the context is done
	compare [followTail]byte
}

// part is a file from an offset to its end.
type part struct {
	f    *os.File
	info os.FileInfo
	at   int64
	copy bool // another file, a copy of f, may have been read up to this offset
}

// follow opens a log and begins at its start.
func follow(ctx context.Context, path string, idle func() error, note func(string)) (*follower, error) {
	l := &follower{ctx: ctx, path: path, names: rotatedNames(path), idle: idle, note: note}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s: is not a regular file, expected one to follow", path))
	}
	l.done = l.look().unread // files rotated before the start are not read
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

// Close closes all files. It may close a file twice, which does no harm.
func (l *follower) Close() error {
	for _, p := range l.known() {
		p.f.Close()
	}
	return nil
}

// known returns all files that were read or will be read, the newest last.
func (l *follower) known() []part { return slices.Concat(l.done, []part{l.part}, l.queue) }

// Read returns io.EOF when the context is done and the log has been read to its end.
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
		case n > 0 && !l.has(l.f): // truncated, and then grown
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
		case <-l.ctx.Done(): // data written before is still read
		case <-time.After(followPoll):
		}
	}
}

// has reports whether f holds, before the current offset, the bytes last read.
func (l *follower) has(f *os.File) bool {
	b := l.compare[:len(l.tail)]
	n, _ := f.ReadAt(b, l.at-int64(len(l.tail)))
	return n == len(b) && bytes.Equal(b, l.tail)
}

// size returns the current size of the file in bytes, 0 if it is not known.
func (p part) size() int64 {
	info, err := p.f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

func (p part) more() bool { return p.size() > p.at }

// turn is called at the end of the file. It reports whether the log continues, in this file
// or another.
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
		return l.more() // while the next files are empty, this file may still be written
	}
	if !l.more() {
		l.next()
	}
	return true
}

// next goes to the next part.
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

// restart queues the truncated file from its start. Before it come the copy of its old
// content, from the current offset on, and other unread files. With first, nothing of the
// file has been read yet: restart then returns false unless there are other unread files.
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

// found describes the log and its rotated files at one moment.
type found struct {
	unread []part // files not known before, the oldest first
	rest   *part  // the newest other file that holds the bytes last read
	gone   bool   // the newest known file no longer exists
	named  bool   // the file being read has the log's name
}

// look lists the log and its rotated files.
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
