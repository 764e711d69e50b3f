package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes with a unit: K, M or G, of 1,024, 1,024² and 1,024³, also
// written KiB, MB and so on. It takes decimal numbers, and hexadecimal ones after 0x.
func ParseSize(s string) (uint64, error) {
	number := strings.TrimRight(s, "KkMmGgiB")
	unit := strings.ToUpper(strings.TrimRight(strings.TrimPrefix(s, number), "iB"))
	shift, ok := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30}[unit]
	n, err := strconv.ParseUint(number, 0, 64)
	if !ok || err != nil || n > math.MaxUint64>>shift {
		return 0, fmt.Errorf("%q, expected a number of bytes, such as 64 or 1K", s)
	}
	return n << shift, nil
}
