package naive

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parseFrame reads an offset, or an address after @.
func parseFrame(word string) frame {
	digits, escaped := strings.CutPrefix(word, "@")
	x, _ := strconv.ParseUint(digits, 16, 64)
	return frame{escaped, x}
}

// parsePath reads a path in words.
func parsePath(text string) entry {
	var e entry
	e.base = uint64(text[0] - '0')
	parts := strings.Split(text[2:], "/")
	if e.base == 2 {
		v, _ := strconv.ParseUint(parts[0], 16, 32)
		e.name, parts = uint32(v), parts[1:]
	} else if text[2:] == "" {
		parts = nil
	}
	for _, word := range parts {
		e.frames = append(e.frames, parseFrame(word))
	}
	if e.base == 2 && len(e.frames) > 0 {
		e.base = 3
	}
	return e
}

// name returns the name of a path in words.
func (b impl) name(words string) uint32 {
	e := parsePath(words)
	return b.nameOf(e.base, e.name, e.frames)
}

func (b impl) nameOf(base uint64, name uint32, frames []frame) uint32 {
	h := name
	if base < 2 {
		h = uint32(base)
	}
	switch {
	case b.has("name-cut-ignored") && base == 1:
		h = 0
	case b.has("name-begins-with-0"):
		h = 0
	case b.has("name-begins-with-length") && base < 2:
		h = uint32(len(frames))
	}
	mix := func(x uint32) {
		g := (h ^ x) * 0x9E3779B1
		switch b.bug {
		case "name-added":
			g = (h + x) * 0x9E3779B1
		case "name-multiplied-first":
			g = h*0x9E3779B1 ^ x
		case "name-other-factor":
			g = (h ^ x) * 0x9E3779B9
		}
		switch b.bug {
		case "name-not-shifted":
			h = g
		case "name-shifted-by-16":
			h = g ^ g>>16
		case "name-shift-signed":
			h = g ^ uint32(int32(g)>>15)
		default:
			h = g ^ g>>15
		}
	}
	for i := range frames {
		f := frames[i]
		if b.has("name-innermost-first") {
			f = frames[len(frames)-1-i]
		}
		if !f.escaped || b.has("name-escape-as-offset") {
			mix(uint32(f.x))
			continue
		}
		if !b.has("name-escape-without-mark") {
			mix(0xFFFFFFFF)
		}
		low, high := uint32(f.x), uint32(f.x>>32)
		if b.has("name-escape-high-first") {
			low, high = high, low
		}
		mix(low)
		if !b.has("name-escape-of-32-bits") && !(b.has("name-escape-high-if-any") && high == 0) {
			mix(high)
		}
	}
	return h
}

// code holds the code ranges and the list of an offsets or addresses request.
type code struct {
	shift  uint
	ranges [][2]uint64
	list   []string
}

func parseCode(words string) (c code) {
	parts := strings.Split(words, " ")
	shift, _ := strconv.Atoi(strings.TrimPrefix(parts[0], "shift="))
	c.shift = uint(shift)
	for _, word := range strings.Split(strings.TrimPrefix(parts[1], "code="), ",") {
		start, length, _ := strings.Cut(word, "+")
		var r [2]uint64
		r[0], _ = strconv.ParseUint(start, 16, 64)
		r[1], _ = strconv.ParseUint(length, 16, 64)
		c.ranges = append(c.ranges, r)
	}
	c.list = strings.Split(parts[2], ",")
	return c
}

// ordered returns the ranges in the order in which they are laid end to end.
func (b impl) ordered(c code) [][2]uint64 {
	if b.has("code-by-address") {
		for i := range c.ranges {
			for j := range i {
				if c.ranges[i][0] < c.ranges[j][0] {
					c.ranges[i], c.ranges[j] = c.ranges[j], c.ranges[i]
				}
			}
		}
	}
	return c.ranges
}

// units returns the number of units in a range.
func (b impl) units(c code, r [2]uint64) uint64 {
	if b.has("code-units-rounded-up") {
		return (r[1] + 1<<c.shift - 1) >> c.shift
	}
	return r[1] >> c.shift
}

// offsets returns the frames of addresses.
func (b impl) offsets(words string) string {
	c := parseCode(words)
	out := make([]string, len(c.list))
	for i, word := range c.list {
		address := parseFrame(word).x
		out[i] = frame{true, address}.String()
		before := uint64(0)
		for n, r := range b.ordered(c) {
			f, holds := b.offset(c, r, address, before)
			if holds && !(n > 0 && b.has("code-first-range-alone")) && !(f.escaped && b.has("code-earlier-range-counts")) {
				out[i] = f.String()
				if b.has("code-first-range-counts") {
					break
				}
			}
			if !b.has("code-each-range-from-0") {
				before = b.sum(before, b.units(c, r))
			}
		}
	}
	return strings.Join(out, ",")
}

// sum returns a sum of units. (BT-CODE-2)
func (b impl) sum(x, y uint64) uint64 {
	switch {
	case b.has("code-sums-of-32-bits"):
		return uint64(uint32(x + y))
	case x+y < x && !b.has("code-sums-wrap"):
		return math.MaxUint64
	}
	return x + y
}

// offset returns the frame of an address, if range r holds the address. before is the code
// offset of the beginning of r. (BT-CODE-2)
func (b impl) offset(c code, r [2]uint64, address, before uint64) (f frame, holds bool) {
	d := address - r[0]
	if b.has("code-of-32-bits") {
		d = uint64(uint32(address) - uint32(r[0]))
	}
	inside := address >= r[0] && d>>c.shift < b.units(c, r) || d == r[1] && b.has("code-end-included")
	switch {
	case b.has("code-of-32-bits"):
		inside = d>>c.shift < b.units(c, r)
	case b.has("code-end-wraps"):
		inside = address >= r[0] && address < r[0]+r[1]
	case b.has("code-holds-trailing-bytes"):
		inside = address >= r[0] && d < r[1]
	}
	whole := d&(1<<c.shift-1) == 0 || b.has("code-rounded-down")
	if b.has("code-multiple-of-the-address") {
		whole = address&(1<<c.shift-1) == 0
	}
	x := b.sum(before, d>>c.shift)
	switch {
	case b.has("code-not-shifted"):
		x = before<<c.shift + d
	case b.has("code-from-the-first-range"):
		x = (address - c.ranges[0][0]) >> c.shift
	}
	if d>>c.shift >= b.units(c, r) && b.has("code-holds-trailing-bytes") || !whole || x >= 1<<27 && !b.has("code-of-28-bits") ||
		x == 0 && b.has("code-offset-0-escaped") {
		return frame{true, address}, inside
	}
	return frame{x: x}, inside
}

// addresses returns the addresses of frames; ? stands for an offset outside the code.
func (b impl) addresses(words string) string {
	c := parseCode(words)
	out := make([]string, len(c.list))
	for i, word := range c.list {
		f := parseFrame(word)
		out[i] = "?"
		if f.escaped {
			out[i] = fmt.Sprintf("%x", f.x)
			if b.has("code-escape-as-offset") {
				out[i] = fmt.Sprintf("%x", c.ranges[0][0]+f.x<<c.shift)
			}
			continue
		}
		x := f.x
		if b.has("code-back-not-shifted") {
			x >>= c.shift
		}
		ranges := b.ordered(c)
		for n, r := range ranges {
			if x < b.units(c, r) || n == len(ranges)-1 && b.has("code-beyond-goes-on") {
				out[i] = fmt.Sprintf("%x", r[0]+x<<c.shift)
				break
			}
			if x -= b.units(c, r); b.has("code-back-first-range-alone") {
				break
			}
		}
		if out[i] == "?" && b.has("code-beyond-is-0") {
			out[i] = "0"
		}
	}
	return strings.Join(out, ",")
}
