package symbol

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// FileSpec is an ELF file named by the user, and its load address.
type FileSpec struct {
	Path string
	Load Load
	Addr uint64 // the address or bias, depending on Load
}

// Load is the kind of load address on the command line.
type Load uint8

const (
	LoadAsLinked Load = iota // at the file's own addresses; anywhere if position-independent
	LoadAt                   // Addr is the address of its first segment
	LoadBias                 // Addr is the address in memory minus the file's own address
)

// ParseFileSpec reads PATH, PATH@ADDR or PATH@+BIAS. Numbers are decimal, or
// hexadecimal with 0x, and may have underscores between digits.
func ParseFileSpec(s string) (FileSpec, error) {
	i := strings.LastIndex(s, "@")
	if i < 0 {
		return FileSpec{Path: s}, nil
	}
	f := FileSpec{Path: s[:i], Load: LoadAt}
	digits, isBias := strings.CutPrefix(s[i+1:], "+")
	if isBias {
		f.Load = LoadBias
	}
	n, err := strconv.ParseUint(digits, 0, 64)
	switch {
	case err == nil && f.Path != "":
		f.Addr = n
		return f, nil
	case errors.Is(err, strconv.ErrRange):
		return f, fmt.Errorf("%s: %s does not fit 64 bits", s, digits)
	}
	if _, err := os.Lstat(s); err == nil {
		return FileSpec{Path: s}, nil // a name with an @
	}
	return f, fmt.Errorf("%s: %q, expected PATH@0xADDR, the address of its first segment, or PATH@+0xBIAS", s, s[i+1:])
}

// bias returns the address in memory minus the address in f, and whether the FileSpec gives
// it.
func (s FileSpec) bias(f *File) (bias uint64, known bool) {
	switch s.Load {
	case LoadBias:
		return s.Addr, true
	case LoadAt:
		low, _ := f.extent()
		if page := low &^ (pageSize - 1); s.Addr%pageSize == 0 && low != page {
			low = page // as memory maps show it
		}
		return s.Addr - low, true
	}
	return 0, !f.PIE
}
