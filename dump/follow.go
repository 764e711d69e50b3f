package dump

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// followPoll is how long a follower sleeps at the end of a file.
	followPoll = 20 * time.Millisecond
	// followTurns is how many times it looks at a file that was renamed, each a poll
	// after the other, before it turns to the one that took its name: a writer has the
	// old one open for a while.
	followTurns = 3
)

// Follow opens a log that is still being written, from its beginning, and reads on as
// it grows, until ctx is done: then it ends with io.EOF. A file that was truncated is
// read again from its start. If another file takes its name, that is read after the end
// of the first. The log must not be compressed.
func Follow(ctx context.Context, path string) (*Input, error) {
	if path == Stdin {
		return nil, fmt.Errorf("%s: standard input is followed to its end anyway", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: is not a regular file, expected one to follow", path)
	}
	var magic [4]byte
	if err == nil {
		n, _ := f.ReadAt(magic[:], 0)
		if probe := compressionOf(magic[:n]); probe != "" {
			err = fmt.Errorf("%s: is compressed by %s, expected a plain log to follow", path, probe)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	in := &Input{Name: path, Size: -1}
	fol := &follower{ctx: ctx, path: path, f: f, in: in}
	in.r = counter{fol, &in.stored}
	in.closes = append(in.closes, func() error { return fol.f.Close() })
	return in, nil
}

type follower struct {
	ctx  context.Context
	path string
	f    *os.File
	in   *Input
	at   int64 // offset in f
	left int   // looks at f that found nothing since another file took its name
}

func (l *follower) Read(p []byte) (int, error) {
	for {
		n, err := l.f.Read(p)
		l.at += int64(n)
		if n > 0 || err != nil && err != io.EOF {
			l.left = 0
			return n, err
		}
		if err := l.turn(); err != nil {
			return 0, err
		}
		if l.in.Idle != nil {
			if err := l.in.Idle(); err != nil {
				return 0, err
			}
		}
		select {
		case <-l.ctx.Done():
			return 0, io.EOF
		case <-time.After(followPoll):
		}
	}
}

// turn looks at the end of the file whether the log goes on elsewhere.
func (l *follower) turn() error {
	here, err := l.f.Stat()
	if err != nil {
		return err
	}
	if here.Size() < l.at {
		l.at = 0
		_, err := l.f.Seek(0, io.SeekStart)
		return err
	}
	named, err := os.Stat(l.path)
	if err != nil || os.SameFile(here, named) {
		return nil // moved away, and nothing in its place yet
	}
	if l.left++; here.Size() > l.at || l.left < followTurns {
		return nil // written to since the last read, or it may be yet
	}
	next, err := os.Open(l.path)
	if err != nil {
		return nil
	}
	l.f.Close()
	l.f, l.at, l.left = next, 0, 0
	return nil
}
