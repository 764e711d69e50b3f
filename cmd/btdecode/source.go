package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
)

// source is a log, or records from the command line; it can be opened again.
type source struct {
	path string
	open func() (*dump.Input, error)
}

// findSources turns the arguments into sources: those that are records, or no
// file but base64, are read as they are.
func (d *decoder) findSources() ([]source, error) {
	args := d.args
	if len(args) == 0 {
		args = []string{dump.Stdin}
	}
	if d.follow {
		return []source{{open: func() (*dump.Input, error) { return dump.Follow(interrupted(), args[0]) }}}, nil
	}
	var list []source
	var lines strings.Builder
	for _, a := range args {
		if isLine(a) || isBare(a) {
			if !isLine(a) {
				a = codec.LeadIn + a
			}
			lines.WriteString(a + "\n")
			continue
		}
		if a != dump.Stdin {
			if _, err := os.Stat(a); err != nil {
				return nil, fmt.Errorf("%w; it is no %s line either", err, codec.LeadIn)
			}
		}
		list = append(list, source{open: func() (*dump.Input, error) { return dump.Open(a, d.stdin) }, path: a})
	}
	if lines.Len() > 0 {
		text := []byte(lines.String())
		list = append(list, source{open: func() (*dump.Input, error) {
			return dump.NewInput(bytes.NewReader(text), "<arguments>")
		}})
	}
	return list, nil
}

// isBare says whether an argument is a record without its lead-in.
func isBare(arg string) bool {
	if _, err := os.Stat(arg); err == nil {
		return false
	}
	blob, err := codec.ParseLineLenient(nil, []byte(arg))
	var s codec.Stack
	return err == nil && codec.Decode(&s, blob) == nil
}

// spool copies stdin to a temporary file, so that it can be read twice.
func (d *decoder) spool() error {
	for i := range d.sources {
		if d.sources[i].path != dump.Stdin {
			continue
		}
		f, err := os.CreateTemp("", "btdecode")
		if err != nil {
			return err
		}
		d.cleanup = func() { f.Close(); os.Remove(f.Name()) }
		size, err := io.Copy(f, d.stdin)
		if err != nil {
			return err
		}
		d.sources[i].open = func() (*dump.Input, error) {
			return dump.NewInput(io.NewSectionReader(f, 0, size), "<stdin>")
		}
	}
	return nil
}
