package dump

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

const (
	// followPoll is how long a follower sleeps at the end of a file.
	followPoll = 20 * time.Millisecond
	// followTurns is how many times it looks at a file that was renamed, each a poll
	// after the other, before it turns to the one that took its name: of several
	// writers, some have the old one open for a while.
	followTurns = 3
	// followLast is for how long it reads on once the context is done, of a log that has
	// more than was read by then.
	followLast = time.Second
	// followTail is how many bytes before its place it compares to notice that the file
	// is another than it was.
	followTail = 4 << 10
)

// Follow opens a log that is still being written, from its beginning, and reads on as
// it grows, until ctx is done: then it ends with io.EOF, or with [ErrInterrupted] if there is
// more than can be read in a second. The log may be rotated: when
// another file takes its name, that is read after the end of the first, and between
// them those that had the name in the meantime, if they are still beside it, such as
// log.1 and log.2. When the log was truncated, what was written to it before is read
// from the copy beside it, if there is one; then the log is read again from its start.
// Where it is copied and truncated several times between two looks, 20 ms apart, lines
// may be read twice. The log must not be compressed.
func Follow(ctx context.Context, path string) (*Input, error) {
	if path == Stdin {
		return nil, fmt.Errorf("%s: standard input is followed to its end anyway", path)
	}
	l := &follower{ctx: ctx, path: path, in: &Input{Name: path, Size: -1}}
	rotated, named := l.unread()
	for _, p := range rotated { // before; they are not read
		l.retire(p.f)
	}
	if named != nil {
		named.Close()
	}
	info, err := os.Stat(path) // to open a FIFO would wait for a writer
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: is not a regular file, expected one to follow", path)
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	l.part = part{f: f, first: true}
	if probe := compressionOfFile(f); probe != "" {
		l.close()
		return nil, fmt.Errorf("%s: is compressed by %s, expected a plain log to follow", path, probe)
	}
	l.in.r = counter{l, &l.in.stored}
	l.in.closes = append(l.in.closes, l.close)
	return l.in, nil
}

// compressionOfFile names how a file is compressed, "" if it is not.
func compressionOfFile(f *os.File) string {
	var magic [4]byte
	n, _ := f.ReadAt(magic[:], 0)
	return compressionOf(magic[:n])
}

// follower reads a log that is written and rotated.
type follower struct {
	ctx  context.Context
	path string
	in   *Input

	part              // being read
	tail    []byte    // what was read of it last, at most followTail bytes
	queue   []part    // what is read next
	done    []retired // what is not read again
	compare [followTail]byte
	until   time.Time // when reading ends, as ctx is done
	left    int       // looks at the file that found nothing since another took its name
}

// part is a file from an offset on.
type part struct {
	f  *os.File
	at int64
	// first: nothing was read of it since it was opened, or truncated, so that it can
	// have been truncated before.
	first bool
	// copied: what is read before it may be a copy of what it still has.
	copied bool
}

func (l *follower) close() error {
	var err error
	if l.f != nil {
		err = l.f.Close()
	}
	for _, p := range l.queue {
		if p.f != l.f {
			p.f.Close()
		}
	}
	for _, r := range l.done {
		r.close()
	}
	return err
}

func (l *follower) Read(p []byte) (int, error) {
	for {
		ends, late := l.ctx.Err() != nil, false
		if ends && l.until.IsZero() {
			l.until = time.Now().Add(followLast)
		} else if ends {
			late = time.Now().After(l.until)
		}
		n, err := l.f.ReadAt(p, l.at)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if n > 0 && late {
			return 0, ErrInterrupted
		}
		// A file that was truncated and has grown past the place since is told by what
		// is before it. Looked at last, it holds for what was read, too.
		if n > 0 && !l.continues(l.f) {
			l.restartAfter(l.copies(), false)
			continue
		}
		if n > 0 && l.first {
			// Had it been truncated before it was read, there would be a copy by now.
			if files := l.copiedBefore(); len(files) > 0 {
				l.restartAfter(files, true)
				continue
			}
			l.first = false
		}
		if n > 0 {
			l.at += int64(n)
			l.tail = append(l.tail, p[max(0, n-followTail):n]...)
			l.tail = l.tail[max(0, len(l.tail)-followTail):]
			l.left = 0
			return n, nil
		}
		again, err := l.turn()
		if err != nil {
			return 0, err
		}
		switch {
		case again && late:
			return 0, ErrInterrupted
		case again:
			continue
		}
		if l.in.Idle != nil {
			if err := l.in.Idle(); err != nil {
				return 0, err
			}
		}
		if ends {
			return 0, io.EOF
		}
		select {
		case <-l.ctx.Done(): // what was written before is still read
		case <-time.After(followPoll):
		}
	}
}

// continues reports whether f has before the place what was read there.
func (l *follower) continues(f *os.File) bool {
	b := l.compare[:len(l.tail)]
	n, _ := f.ReadAt(b, l.at-int64(len(l.tail)))
	return n == len(b) && bytes.Equal(b, l.tail)
}

// turn looks, at the end of the file, whether the log goes on elsewhere. If so, again
// is true: there may be more to read.
func (l *follower) turn() (again bool, err error) {
	here, err := l.f.Stat()
	if err != nil {
		return false, err
	}
	switch {
	case here.Size() < l.at:
		l.restartAfter(l.copies(), false)
		return true, nil
	case here.Size() > l.at:
		return true, nil
	case len(l.queue) > 0:
		l.next()
		return true, nil
	}
	named, err := os.Stat(l.path)
	if err != nil || os.SameFile(here, named) {
		l.left = 0
		return false, nil // or moved away, and nothing in its place yet
	}
	if l.left++; l.left < followTurns {
		return false, nil
	}
	queue, file := l.unread()
	if file == nil {
		closeParts(queue)
		return false, nil
	}
	queue = append(queue, part{f: file, first: true})
	for _, p := range queue {
		// As long as the new file is empty, the old one may be written to. Once it is
		// not, what the old one has now is all.
		if info, err := p.f.Stat(); err == nil && info.Size() > 0 {
			l.queue, l.left = queue, 0
			return true, nil
		}
	}
	closeParts(queue)
	return false, nil
}

func closeParts(list []part) {
	for _, p := range list {
		p.f.Close()
	}
}

// next turns to the next part.
func (l *follower) next() {
	last, next := l.part, l.queue[0]
	l.queue = l.queue[1:]
	if next.copied && len(l.tail) > 0 && l.continues(next.f) {
		next.at, next.first = last.at, false // not yet truncated
	} else {
		l.tail = nil
	}
	l.part = next
	if next.f != last.f && !slices.ContainsFunc(l.queue, func(p part) bool { return p.f == last.f }) {
		l.retire(last.f)
	}
}

// restartAfter turns to the start of the log, which was truncated, but first to copies
// that were made of it before.
func (l *follower) restartAfter(copies []part, copied bool) {
	l.queue = append(append(copies, part{f: l.f, first: true, copied: copied}), l.queue...)
	l.next()
}
