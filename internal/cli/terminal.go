package cli

import (
	"io"
	"os"
	"strconv"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// IsTerminal reports whether a stream (also one that Run passes on) is a terminal.
func IsTerminal(stream any) bool {
	f := File(stream)
	return f != nil && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// File returns the file under a stream (also one that Run passes on), nil if there is
// none.
func File(stream any) *os.File {
	if o, ok := stream.(*output); ok {
		stream = o.w
	}
	f, _ := stream.(*os.File)
	return f
}

// DefaultWidth is the number of columns of output that is not a terminal.
const DefaultWidth = 80

// Width returns the number of columns of the terminal w, or else $COLUMNS or 80.
func Width(w io.Writer) int {
	if f := File(w); f != nil && IsTerminal(w) {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n >= 20 {
			return n
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= 20 {
		return n
	}
	return DefaultWidth
}

// Height returns the number of lines of a terminal, 24 if it is not known.
func Height(w io.Writer) int {
	if f := File(w); f != nil && IsTerminal(w) {
		if _, n, err := term.GetSize(int(f.Fd())); err == nil && n > 1 {
			return n
		}
	}
	return 24
}

// Color reports whether w is coloured under --color when: auto, always or never.
// Auto is a terminal, unless NO_COLOR is set or TERM is dumb.
func Color(when string, w io.Writer) bool {
	switch when {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(w)
}

// Number returns n with a comma between groups of three digits.
func Number[T int | int64 | uint64](n T) string { return printable.Number(n) }

// Count returns n and the noun, in the plural unless n is 1.
func Count[T int | int64 | uint64](n T, noun string) string { return printable.Count(n, noun) }
