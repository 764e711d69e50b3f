//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/newfile"
)

// outputs are the recordings: that of the program, and beside it those of its children. The program
// may be able to write to their directory, and need not have the rights of btrecord.
type outputs struct {
	path string // of the program's recording, absolute
	root *os.File
	dir  *newfile.Dir // nil if the program's is not a regular file
	name string       // of the program's, in dir
}

// createOutput creates an empty recording, so that a path that cannot be written is
// reported before the program runs.
func (o *options) createOutput(program string) (*outputs, error) {
	switch info, err := os.Stat(o.output); {
	case o.output == cli.Stdio:
		return &outputs{path: "standard output", root: os.Stdout}, nil
	case o.output == "":
		return createNew(filepath.Base(program))
	case err == nil && info.IsDir():
		return nil, cli.Usagef("%s: is a directory, expected a file to write", o.output)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(o.output, os.O_WRONLY, 0)
		if err != nil {
			return nil, failed(notRecorded, "%w", err)
		}
		return newOutputs(f, nil, "")
	}
	dir, name, info, err := newfile.Target(o.output)
	if err == nil && info != nil {
		err = dir.Remove(name)
	}
	var f *os.File
	if err == nil {
		f, err = dir.Create(name)
	}
	if err != nil {
		return nil, failed(notRecorded, "%w", err)
	}
	return newOutputs(f, dir, name)
}

// createNew creates base.rec, or base.2.rec and so on if that exists.
func createNew(base string) (*outputs, error) {
	dir, err := newfile.OpenDir(".")
	if err != nil {
		return nil, failed(notRecorded, "%w", err)
	}
	f, name, err := createFree(dir, base, ".rec")
	if err != nil {
		return nil, failed(notRecorded, "%w; see -o", err)
	}
	return newOutputs(f, dir, name)
}

func newOutputs(f *os.File, dir *newfile.Dir, name string) (*outputs, error) {
	path, err := filepath.Abs(f.Name())
	return &outputs{path, f, dir, name}, err
}

// create opens the recording of the program or creates that of another process, and returns its name:
// FILE.PID or, if that is there, FILE.PID.2 and so on.
func (o *outputs) create(pid string, root bool) (io.WriteCloser, string, error) {
	if root {
		return o.root, filepath.Base(o.path), nil
	}
	if o.dir == nil {
		return nil, "", fmt.Errorf("%s is not a regular file: no recordings of children are beside it", o.path)
	}
	return createFree(o.dir, o.name+"."+pid, "")
}

// createFree creates a file with the first free name of base + suffix, base.2 + suffix and so on.
func createFree(dir *newfile.Dir, base, suffix string) (*os.File, string, error) {
	return dir.CreateFree(func(n int) string {
		if n > 1 {
			return fmt.Sprintf("%s.%d%s", base, n, suffix)
		}
		return base + suffix
	})
}

// remove removes the program's recording.
func (o *outputs) remove() {
	if o.dir != nil {
		o.root.Close()
		o.dir.Remove(o.name)
	}
}
