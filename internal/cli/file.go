package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"

	"github.com/lwsbt/lwsbt/internal/newfile"
)

// OutputFile is a file written under a temporary name beside its target. It replaces the
// target when it is complete. A target that is not a regular file, such as a device or
// a pipe, is written directly.
type OutputFile struct {
	f      *os.File
	dir    *newfile.Dir
	temp   string // in dir; "" if written directly
	target string // in dir
	done   bool
}

// Stdio is the path that means standard input or output.
const Stdio = "-"

// CreateOutput begins the output file path. It rejects a target that is also an input
// file, under any name or link; Stdio is standard input.
func CreateOutput(path string, inputs []string) (*OutputFile, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a device, a pipe, or a link to it
		if info.IsDir() {
			return nil, Usagef("%s: is a directory, expected a file to write", path)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, &Error{Failed, err}
		}
		return &OutputFile{f: f, target: path}, nil
	}
	dir, target, info, err := newfile.Target(path)
	if err != nil {
		return nil, failedOn(path, err)
	}
	if in, is := inputOf(info, inputs); is {
		dir.Close()
		return nil, Usagef("%s: is the same file as the input %s; it would be lost", path, in)
	}
	perm := fs.FileMode(0o600)
	if info != nil {
		perm = info.Mode().Perm()
	}
	o := &OutputFile{dir: dir, temp: fmt.Sprintf(".%s.%016x.tmp", target, rand.Uint64()), target: target}
	if o.f, err = dir.CreateMode(o.temp, perm); err != nil {
		dir.Close()
		return nil, failedOn(path, err)
	}
	removeAtInterrupt(o.f.Name())
	if info != nil {
		o.f.Chmod(perm) // the umask may have taken some of it
	}
	return o, nil
}

// failedOn returns an error that exits with Failed, and names path in place of a temporary file.
func failedOn(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		p.Path = path
	}
	return &Error{Failed, err}
}

// inputOf returns the input file that info describes, if there is one. info may be nil.
func inputOf(info fs.FileInfo, inputs []string) (in string, is bool) {
	if info == nil || !info.Mode().IsRegular() {
		return "", false
	}
	for _, in := range inputs {
		read, err := os.Stat(in)
		if in == Stdio {
			read, err = os.Stdin.Stat()
		}
		if err == nil && os.SameFile(info, read) {
			return in, true
		}
	}
	return "", false
}

// CheckStdout rejects a standard output that is also an input file. It is for commands
// that write while they read: they would read their own output in an endless loop.
func CheckStdout(stdout io.Writer, inputs []string) error {
	f := File(stdout)
	if f == nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil // writing to it returns the error
	}
	if in, is := inputOf(info, inputs); is {
		return Usagef("standard output is the same file as the input %s; what is written would be read again", in)
	}
	return nil
}

// Write writes to the file; an error exits with Failed.
func (o *OutputFile) Write(p []byte) (int, error) {
	n, err := o.f.Write(p)
	if err != nil && !ClosedPipe(err) {
		err = failedOn(o.target, err)
	}
	return n, err
}

// Commit closes the file and replaces the target.
func (o *OutputFile) Commit() error {
	o.done = true
	if err := o.f.Close(); err != nil {
		o.remove()
		return &Error{Failed, err}
	}
	if o.temp == "" {
		return nil
	}
	if err := o.dir.Rename(o.temp, o.target); err != nil {
		o.remove()
		return &Error{Failed, err}
	}
	keepAtInterrupt(o.f.Name())
	return o.dir.Close()
}

// Abort closes and removes the file, and leaves the target unchanged. After Commit, it
// does nothing, so it can be deferred.
func (o *OutputFile) Abort() {
	if !o.done {
		o.done = true
		o.f.Close()
		o.remove()
	}
}

func (o *OutputFile) remove() {
	if o.temp != "" {
		o.dir.Remove(o.temp)
		keepAtInterrupt(o.f.Name())
		o.dir.Close()
	}
}

// WriteOutput calls write with the output at path, or with stdout if path is "" or "-". It
// creates the file only if write returns nil; see [CreateOutput].
func WriteOutput(path string, inputs []string, stdout io.Writer, write func(io.Writer) error) error {
	if path == "" || path == Stdio {
		return write(stdout)
	}
	o, err := CreateOutput(path, inputs)
	if err != nil {
		return err
	}
	defer o.Abort()
	if err := write(o); err != nil {
		return err
	}
	return o.Commit()
}
