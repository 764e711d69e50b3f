package symbol

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Adjust says at which address a return address is looked up.
type Adjust uint8

const (
	// AdjustAuto looks at the call, but where the code is known to have none in
	// front of the address, as in a signal handler's caller, at the address.
	AdjustAuto Adjust = iota
	AdjustAll
	AdjustNone
)

// ParseAdjust reads "auto", "all" or "none".
func ParseAdjust(name string) (Adjust, error) {
	i := slices.Index([]string{"auto", "all", "none"}, name)
	if i < 0 {
		return 0, fmt.Errorf("%q, expected auto, all or none", name)
	}
	return Adjust(i), nil
}

// Given is an ELF file that the user names, and where it is loaded, if known.
type Given struct {
	Path  string
	Base  uint64
	Based bool
}

// ParseGiven reads PATH or PATH@BASE.
func ParseGiven(s string) (Given, error) {
	path, base, ok := cutLast(s, "@")
	if !ok {
		return Given{Path: s}, nil
	}
	var g Given
	n, err := fmt.Sscanf(base, "0x%x", &g.Base)
	if err != nil || n != 1 {
		if _, err := os.Stat(s); err == nil {
			return Given{Path: s}, nil // a name with an @
		}
		return g, fmt.Errorf("%s: %q, expected PATH@0xBASE", s, base)
	}
	g.Path, g.Based = path, true
	return g, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
