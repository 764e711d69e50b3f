package symbol

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxDemangled is the base-2 logarithm of the longest demangled name: a mangled
// one of 255 bytes can stand for more than fits in memory.
const maxDemangled = 14

// Demangle returns the source name for a linkage name of C++ or Rust, and any other
// name unchanged. At most 16,384 bytes are returned.
func Demangle(name string) string {
	if !strings.HasPrefix(name, "_") {
		return name
	}
	return demangle.Filter(name, demangle.MaxLength(maxDemangled))
}
