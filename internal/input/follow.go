package input

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	followPoll     = 20 * time.Millisecond // between two checks for new data
	followPatience = 3                     // checks at the end of a renamed file, which another program may still write
	followLast     = time.Second           // limit for reading the rest once the context is done
	followTail     = 4 << 10               // bytes before the offset, compared to recognize the content of a file
)

// follower reads a log that another program writes, as tail -F does: when another file has the name
// of the log, the follower reads the old one to its end and then that one.
type follower struct {
	ctx  context.Context
	path string
	idle func() error // called after each check that finds no new data
	note func(string) // called if lines may be lost

	f     *os.File  // being read
	at    int64     // offset in f
	tail  []byte    // the last bytes read from f
	looks int       // checks at the end of f since another file has its name
	until time.Time // deadline for reading, once the context is done
}

// follow begins at the start of a log.
func follow(ctx context.Context, path string, idle func() error, note func(string)) (*follower, error) {
	l := &follower{ctx: ctx, path: path, idle: idle, note: note}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s: is not a regular file, expected one to follow", path))
	}
	compression, err := compressionOf(path)
	switch {
	case err != nil:
		return nil, err
	case compression != "" && compression != "zstd": // btrecord compresses recordings by zstd
		return nil, fmt.Errorf("%s: is compressed, expected a plain log to follow", path)
	}
	l.f, err = os.Open(path)
	return l, err
}

// Close closes the file being read.
func (l *follower) Close() error { return l.f.Close() }

// Read returns io.EOF when the context is done and the log has been read to its end.
func (l *follower) Read(p []byte) (int, error) {
	for {
		ends := l.ctx.Err() != nil
		if ends && l.until.IsZero() {
			l.until = time.Now().Add(followLast)
		}
		n, err := l.read(p)
		switch {
		case n > 0 && ends && time.Now().After(l.until):
			return 0, l.ctx.Err()
		case n > 0 || err != nil:
			return n, err
		case l.next(ends):
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

// read reads from the file, from its start if it was truncated. It returns 0, nil at its end.
func (l *follower) read(p []byte) (int, error) {
	n, err := l.f.ReadAt(p, l.at)
	if n == 0 && err != io.EOF {
		return 0, err
	}
	before := make([]byte, len(l.tail))
	if k, _ := l.f.ReadAt(before, l.at-int64(len(before))); k < len(before) || !bytes.Equal(before, l.tail) {
		l.note(l.path + ": was truncated: lines that were written to it just before may be lost")
		l.at, l.tail = 0, nil
		return l.read(p)
	}
	l.at += int64(n)
	l.tail = append(l.tail, p[max(0, n-followTail):n]...)
	l.tail = l.tail[max(0, len(l.tail)-followTail):]
	return n, nil
}

// next is called at the end of the file. It goes on with the file that has the log's name now, and
// returns false if that is the same one, or empty.
func (l *follower) next(ends bool) bool {
	current, _ := l.f.Stat()
	named, err := os.Stat(l.path)
	if err != nil || !named.Mode().IsRegular() || os.SameFile(named, current) || named.Size() == 0 && !ends {
		return false // while the log is empty, the renamed file may still be written
	}
	if l.looks++; l.looks <= followPatience && !ends {
		return false
	}
	f, err := os.Open(l.path)
	if err != nil {
		return false
	}
	l.f.Close()
	l.f, l.at, l.tail, l.looks = f, 0, nil, 0
	return true
}
