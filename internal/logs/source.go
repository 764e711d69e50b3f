package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

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
}

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
			if _, err := os.Stat(a); err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return nil, fmt.Errorf("%s: no such file; nor is it a record, which begins with %s", a, codec.LeadIn)
				}
				return nil, err
			}
			list = append(list, source{path: a, open: func() (*dump.Input, error) { return dump.Open(a, nil) }})
		}
	}
	if lines.Len() > 0 {
		text := []byte(lines.String())
		list = append(list, source{open: func() (*dump.Input, error) {
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

// stdinSource is standard input: live unless it is a file.
func (r *Reader) stdinSource() source {
	if f, ok := r.stdin.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return source{path: dump.Stdin, open: func() (*dump.Input, error) {
				if _, err := f.Seek(0, io.SeekStart); err != nil {
					return nil, err
				}
				return dump.NewInput(f, "<stdin>")
			}}
		}
	}
	return source{path: dump.Stdin, live: true, open: func() (*dump.Input, error) {
		return dump.NewInput(r.interruptible(r.stdin), "<stdin>")
	}}
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
