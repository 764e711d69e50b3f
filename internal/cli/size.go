package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes with a unit: K, M, G or T, of 1,024, 1,024², 1,024³ and 1,024⁴, also
// written KiB, MB and so on. It takes decimal numbers, and hexadecimal ones after 0x.
func ParseSize(s string) (uint64, error) {
	number := strings.TrimRight(s, "KkMmGgTtiB")
	unit := strings.ToUpper(strings.TrimRight(strings.TrimPrefix(s, number), "iB"))
	shift, ok := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[unit]
	n, err := strconv.ParseUint(number, 0, 64)
	if !ok || err != nil || n > math.MaxUint64>>shift {
		return 0, fmt.Errorf("%q, expected a number of bytes, such as 64 or 1K", s)
	}
	return n << shift, nil
}

// Size is the value of a flag: a number of bytes as ParseSize reads it, but not 0.
type Size uint64

// String returns the number of bytes, "" for 0.
func (s *Size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*s), 10)
}

// Set reads the value.
func (s *Size) Set(text string) error {
	n, err := ParseSize(text)
	if err != nil || n == 0 {
		return errors.New("expected a number of bytes, such as 262144 or 256K")
	}
	*s = Size(n)
	return nil
}

// Type returns the name of the type in help texts.
func (s *Size) Type() string { return "size" }

// Natural is the value of a flag: an integer from 0.
type Natural int

// String returns the number.
func (n *Natural) String() string { return strconv.Itoa(int(*n)) }

// Set reads the value.
func (n *Natural) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || v < 0 {
		return errors.New("expected a number from 0")
	}
	*n = Natural(v)
	return nil
}

// Type returns the name of the type in help texts.
func (n *Natural) Type() string { return "number" }
