package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Exit codes, the same for every command.
const (
	OK     = 0 // as expected
	Short  = 1 // the data is damaged or incomplete, or a check failed: a vector failed, a bad line under --strict, a threshold passed
	Usage  = 2 // usage, unreadable input, nothing to do
	Failed = 3 // something outside failed: a program under test, the harness, an output that cannot be written
)

// Error is an error with an exit code. Any other error exits with Usage.
type Error struct {
	Code int
	Err  error // nil to print nothing
}

// Error returns the message of Err, or the code if Err is nil.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Shortf returns an error that exits with Short.
func Shortf(format string, args ...any) error { return &Error{Short, fmt.Errorf(format, args...)} }

// Usagef returns an error that exits with Usage.
func Usagef(format string, args ...any) error { return &Error{Usage, fmt.Errorf(format, args...)} }

// Failedf returns an error that exits with Failed.
func Failedf(format string, args ...any) error { return &Error{Failed, fmt.Errorf(format, args...)} }

// Exit returns an error that exits with code and prints nothing; nil for OK.
func Exit(code int) error {
	if code == OK {
		return nil
	}
	return &Error{Code: code}
}

// Code returns the exit code of a command that returned err.
func Code(err error) int {
	var e *Error
	switch {
	case err == nil, ClosedPipe(err):
		return OK
	case errors.As(err, &e):
		return e.Code
	}
	return Usage
}

// ClosedPipe reports whether err is a write to a pipe whose reader has closed it, which is
// not a failure.
func ClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

// Message returns the message of err for a user: without a system call before a path or
// a Go function before a number, with each file named once, and with control characters
// escaped.
func Message(err error) string {
	s := err.Error()
	var e *exec.Error
	if errors.As(err, &e) {
		s = onFile(s, e.Error(), e.Name, e.Err)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		s = onFile(s, p.Error(), p.Path, p.Err)
	}
	var n *strconv.NumError
	if errors.As(err, &n) {
		want := "expected a whole number"
		switch {
		case errors.Is(n, strconv.ErrRange):
			want = "the number is out of range"
		case n.Func == "ParseFloat":
			want = "expected a number"
		case n.Func == "ParseBool":
			want = "expected true or false"
		}
		s = strings.Replace(s, n.Error(), want, 1)
	}
	return Printable(s)
}

// onFile returns the message s in which part, the message of err on a file, is replaced by
// "NAME: reason". The text before part may already name the file.
func onFile(s, part, name string, err error) string {
	if name == "" {
		name = `""`
	}
	s = strings.Replace(s, part, name+": "+err.Error(), 1)
	return strings.Replace(s, name+": "+name+": ", name+": ", 1)
}

// Printable returns s with control characters and other unprintable ones escaped, so that it
// cannot move a cursor or end a line.
func Printable(s string) string { return printable.Text(s) }
