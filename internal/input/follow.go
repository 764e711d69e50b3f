package input

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

const (
	followPoll     = 20 * time.Millisecond // between two checks for new data
	followPatience = 3                     // checks at the end of a renamed file, which another program may still write
	followLast     = time.Second           // limit for reading the rest once the context is done
	followTail     = 4 << 10               // bytes before the offset, compared to recognize the content of a file
)

// follower reads a log that another program writes and rotates. After the file was renamed,
// the follower reads it to its end, then the newer rotated files beside it, such as log.1
// and log.2, and then the file that now has the log's name. A file that was copied and
// truncated is the same case: the follower goes on in the copy, as if that were the file.
type follower struct {
	ctx  context.Context
	path string
	idle func() error // called after each check that finds no new data
	note func(string) // called if lines may be lost

	f     *os.File  // being read; nil before the oldest file that is not in past
	at    int64     // offset in f
	tail  []byte    // the last bytes read from f
	past  []rotated // files already read, or to be skipped
	looks int       // checks at the end of f since there is a newer file
	until time.Time // deadline for reading, once the context is done
}

// follow begins at the start of a log. Files rotated before are not read.
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
	l.past = rotatedOf(l.list())
	l.next(false)
	return l, nil
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

// read reads from the file. It returns 0, nil at its end.
func (l *follower) read(p []byte) (int, error) {
	for l.f != nil {
		n, err := l.f.ReadAt(p, l.at)
		switch {
		case n == 0 && err != io.EOF:
			return 0, err
		case l.has(l.f):
			l.at += int64(n)
			l.tail = append(l.tail, p[max(0, n-followTail):n]...)
			l.tail = l.tail[max(0, len(l.tail)-followTail):]
			return n, nil
		}
		l.truncated()
	}
	return 0, nil
}

// has reports whether f holds, before the current offset, the bytes last read.
func (l *follower) has(f *os.File) bool {
	b := make([]byte, len(l.tail))
	n, _ := f.ReadAt(b, l.at-int64(len(b)))
	return n == len(b) && bytes.Equal(b, l.tail)
}

// truncated goes on in the newest copy of the old content of the file, at the same offset,
// or in the file from its start.
func (l *follower) truncated() {
	l.f.Close()
	files := l.list()
	for _, r := range slices.Backward(files) {
		f, err := os.Open(r.path)
		if err == nil && l.has(f) {
			l.f = f
			return
		}
		f.Close()
	}
	l.note(l.path + ": was truncated: lines that were written to it just before may be lost")
	l.f = nil
	l.past = append(l.past, rotatedOf(files)...)
}

// next is called at the end of the file. It returns true if the log continues, in this file
// or another, and false if nothing is to be read now.
func (l *follower) next(ends bool) bool {
	current, _ := l.f.Stat()
	named, err := os.Stat(l.path)
	if err != nil || os.SameFile(named, current) || named.Size() == 0 && !ends {
		return false // while the log is empty, the renamed file may still be written
	}
	files := l.list()
	i := slices.IndexFunc(files, func(r rotated) bool { return os.SameFile(r.info, current) })
	files = files[i+1:]
	if current, err = l.f.Stat(); err == nil && current.Size() > l.at {
		return true // written before the next file was
	}
	l.looks++
	if len(files) == 0 || len(files) == 1 && i >= 0 && l.looks <= followPatience && !ends {
		return false
	}
	f, err := os.Open(files[0].path)
	if info, _ := f.Stat(); err != nil || !os.SameFile(info, files[0].info) {
		f.Close()
		return false // it was renamed just now
	}
	if l.f != nil {
		if i < 0 {
			l.note(l.path + ": the file that was read was removed: if other files had its name since, their lines are lost")
		} else {
			l.past = append(l.past, rotated{info: current})
		}
		l.f.Close()
	}
	l.f, l.at, l.tail, l.looks = f, 0, nil, 0
	return true
}
