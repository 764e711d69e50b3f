package symbol

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxDemangled is the base-2 logarithm of the longest demangled name, in bytes. A mangled
// name of 255 bytes can expand to more than fits in memory.
const maxDemangled = 14

// demangled returns the source name for a C++ or Rust linkage name, at most 16,384 bytes.
// It returns any other name unchanged, and also a name that could take over 2 s.
func demangled(name string) string {
	if !strings.HasPrefix(name, "_") || demangleCost(name) > maxCostOfName {
		return name
	}
	return demangle.Filter(name, demangle.MaxLength(maxDemangled))
}

// Limits for the estimate of demangleCost, in ns.
const (
	maxCostOfName = 2e9
	maxCost       = 10e9
)

// demangleCost returns an upper estimate of the time to demangle a name, in ns. The time of
// package demangle grows with the cube of the length for names with parameter packs (Dp, sp)
// and with the square for others. Identifiers do not count. The largest estimate for a name
// in LLVM or clang is 5 ms.
func demangleCost(name string) int64 {
	n := int64(0)
	for i := 0; i < len(name); n++ {
		length := 0
		for ; i < len(name) && '0' <= name[i] && name[i] <= '9' && length < len(name); i++ {
			length = 10*length + int(name[i]-'0')
		}
		i += max(1, min(length, len(name)-i))
	}
	packs := int64(strings.Count(name, "Dp") + strings.Count(name, "sp"))
	return n * (500 + n*(8+100*packs))
}

// A Demangler demangles names, each once, within a time limit. The zero value is ready to
// use.
type Demangler struct {
	names map[string]string
	spent int64 // sum of demangleCost, in ns
	left  bool  // a name was returned unchanged
}

// Demangle returns the source name for a C++ or Rust linkage name, at most 16,384 bytes. It
// returns any other name unchanged. It also returns a name unchanged if demangling it could
// take over 2 s, or all names together over 10 s.
func (d *Demangler) Demangle(name string) string {
	if !strings.HasPrefix(name, "_") {
		return name
	}
	s, ok := d.names[name]
	if ok {
		return s
	}
	s = name
	if cost := demangleCost(name); cost > maxCostOfName || d.spent+cost > maxCost {
		d.left = true
	} else {
		d.spent += cost
		s = demangled(name)
	}
	if d.names == nil {
		d.names = map[string]string{}
	}
	d.names[name] = s
	return s
}

// Why returns why some names were returned unchanged, "" if there is no reason.
func (d *Demangler) Why() string {
	if !d.left {
		return ""
	}
	return "names of functions take more time to demangle than those of a program should: some are shown as they are"
}
