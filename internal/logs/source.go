package logs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"go.bug.st/serial"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// source is a log, or records from the command line.
type source struct {
	path string
	open func() (*dump.Input, error) // once only, if live
	live bool                        // it may pause, and go on for ever

	stream io.Reader // under open, if live, and spool can copy it
	name   string    // in places, if it is not path
}

// place returns the name of the source in messages.
func (s *source) place() string { return cmp.Or(s.name, s.path) }

// IsLine reports whether an argument is a record and not the name of a log.
func IsLine(arg string) bool {
	return strings.HasPrefix(arg, codec.LeadIn) || strings.HasPrefix(arg, codec.LeadInDecoded)
}

// sources turns the arguments into sources: those that are records, or no file but
// base64, are read as they are.
func (r *Reader) findSources(args []string) ([]source, error) {
	f := r.flags
	switch {
	case f.Serial != "":
		return []source{{path: f.Serial, live: true, open: r.openSerial}}, nil
	case f.Follow:
		return []source{{path: args[0], live: true, open: func() (*dump.Input, error) { return dump.Follow(r.ctx, args[0]) }}}, nil
	case len(args) == 0:
		args = []string{dump.Stdin}
	}
	var list []source
	var lines strings.Builder
	for _, a := range args {
		switch {
		case a == dump.Stdin:
			list = append(list, r.stdinSource())
		case IsLine(a):
			lines.WriteString(a + "\n")
		case isBare(a):
			lines.WriteString(codec.LeadIn + a + "\n")
		default:
			info, err := os.Stat(a)
			if err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return nil, fmt.Errorf("%s: no such file; nor is it a record, which begins with %s", a, codec.LeadIn)
				}
				return nil, err
			}
			if !info.Mode().IsRegular() && !info.IsDir() {
				p := &pipe{path: a}
				r.cleanup = append(r.cleanup, p.close)
				list = append(list, r.streamSource(a, p, a))
				continue
			}
			list = append(list, source{path: a, open: func() (*dump.Input, error) { return dump.Open(a, nil) }})
		}
	}
	if lines.Len() > 0 {
		text := []byte(lines.String())
		list = append(list, source{name: "<arguments>", open: func() (*dump.Input, error) {
			return dump.NewInput(bytes.NewReader(text), "<arguments>")
		}})
	}
	return list, nil
}

// isBare reports whether an argument is a record without its lead-in.
func isBare(arg string) bool {
	if _, err := os.Stat(arg); err == nil {
		return false
	}
	blob, err := codec.ParseLineLenient(nil, []byte(arg))
	var s codec.Stack
	return err == nil && codec.Decode(&s, blob) == nil
}

// stdinSource is standard input: live unless it is a file. A file is read from where it
// stands, as what was read before may be another program's.
func (r *Reader) stdinSource() source {
	if f, ok := r.stdin.(*os.File); ok {
		info, err := f.Stat()
		at, seekErr := f.Seek(0, io.SeekCurrent)
		if err == nil && seekErr == nil && info.Mode().IsRegular() {
			return source{path: dump.Stdin, name: "<stdin>", open: func() (*dump.Input, error) {
				if _, err := f.Seek(at, io.SeekStart); err != nil {
					return nil, err
				}
				return dump.NewInput(f, "<stdin>")
			}}
		}
	}
	return r.streamSource(dump.Stdin, r.stdin, "<stdin>")
}

// streamSource is a source that can be read once, such as a pipe.
func (r *Reader) streamSource(path string, stream io.Reader, name string) source {
	return source{path: path, live: true, stream: stream, name: name, open: func() (*dump.Input, error) {
		return dump.NewInput(r.interruptible(stream), name)
	}}
}

// pipe is a file that is no regular one, as bash's <(…) is, opened by the first Read:
// that of a FIFO waits for a writer. It is not opened again, as what was read is gone.
type pipe struct {
	path string
	mu   sync.Mutex // of what follows
	f    *os.File
	err  error
}

func (p *pipe) Read(b []byte) (int, error) {
	if p.f == nil && p.err == nil {
		f, err := os.Open(p.path)
		p.mu.Lock()
		p.f, p.err = f, err
		p.mu.Unlock()
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.f.Read(b)
}

func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.f != nil {
		p.f.Close()
	}
}

// openSerial opens the port of --serial.
func (r *Reader) openSerial() (*dump.Input, error) {
	port, err := serial.Open(r.flags.Serial, &serial.Mode{BaudRate: r.flags.baud})
	if err != nil {
		return nil, cli.Usagef("--serial %s: %w", r.flags.Serial, err)
	}
	context.AfterFunc(r.ctx, func() { port.Close() })
	return dump.NewInput(r.interruptible(port), r.flags.Serial)
}
