package heapfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/symbol"
)

// The text of gperftools (docs/heapprofile.html, heap-profile-table.cc), of Go (runtime/pprof,
// debug=1), and of jemalloc (prof_data.c, 3.6 to 5.3). Each call path has its live blocks and bytes,
// in gperftools and Go before the path, and in jemalloc after it, the total ("t*") and by thread.
// The memory map is at the end; Go has names instead, on the lines below a path.
var (
	heapFirst = regexp.MustCompile(`^heap profile:\s+\d+:\s+\d+ \[\s*\d+:\s*\d+\] @ (\S+)`)
	heapRow   = regexp.MustCompile(`^\s*(\d+):\s+(\d+) \[\s*\d+:\s*\d+\] @((?: 0x[0-9a-fA-F]+)*)`)
	heapPath  = regexp.MustCompile(`^@((?: 0x[0-9a-fA-F]+)*)`)
	heapSum   = regexp.MustCompile(`^\s*t\*: (\d+): (\d+) \[`)
	heapRate  = regexp.MustCompile(`^heap(_v2)?/(\d+)$`)
	heapName  = regexp.MustCompile(`^#\t(0x[0-9a-fA-F]+)\t(.+?)\+0x[0-9a-f]+\t+(.*):(\d+)`)
)

func isHeapText(head []byte) bool {
	return bytes.HasPrefix(head, []byte("heap profile: ")) || bytes.HasPrefix(head, []byte("heap_v2/"))
}

// heapText is a file while it is read.
type heapText struct {
	*builder
	rate    float64 // mean bytes between samples, 0 if all allocations count
	paths   []heapTextPath
	pending []uint64 // in jemalloc, the path whose sum follows
	waiting bool     // the sum of pending follows
	process *symbol.Process
	found   map[uint64]*profile.Location
	names   map[uint64]*heapTextName
	rows    int // so far
}

// heapTextName has the functions at an address, as a path with the number that path has names it.
type heapTextName struct {
	path  int
	lines []profile.Line
}

type heapTextPath struct {
	count, bytes int64
	pcs          []uint64 // return addresses, innermost first
}

// readHeapText reads a file. It names addresses by the files in the memory map, if they are
// still the mapped files.
func readHeapText(r io.Reader) ([]Profile, error) {
	h := &heapText{builder: newBuilder(), found: map[uint64]*profile.Location{}, names: map[uint64]*heapTextName{}}
	in := bufio.NewReaderSize(&limited{r, maxFile}, 64<<10)
	frames := 0
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if line == "MAPPED_LIBRARIES:\n" {
			break
		}
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if e := h.line(line, n == 1); e != nil {
			return nil, fmt.Errorf("line %d: %w", n, e)
		}
		if frames += len(h.pending); frames > maxParts {
			return nil, fmt.Errorf("line %d: over %d frames: %w", n, maxParts, errTooLarge)
		}
		if err == io.EOF {
			break
		}
	}
	maps, err := symbol.ReadMaps(in, "MAPPED_LIBRARIES")
	if err != nil {
		maps = nil // addresses without names are still call paths
	}
	if h.process, err = symbol.NewProcess(symbol.Config{DebugDirs: symbol.DebugDirs()}); err != nil {
		return nil, err
	}
	defer h.process.Close()
	h.process.Map(maps)
	return []Profile{{h.with(h.samples()), ""}}, nil
}

// line reads a line before the memory map.
func (h *heapText) line(text string, first bool) error {
	if first {
		if m := heapFirst.FindStringSubmatch(text); m != nil {
			text = m[1]
		}
		if m := heapRate.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
			rate, err := strconv.ParseUint(m[2], 10, 62)
			if err != nil {
				return fmt.Errorf("sampling rate %s, expected a number below 2^62", m[2])
			}
			if h.rate = float64(rate); m[1] == "" { // Go writes twice the rate
				h.rate /= 2
			}
		}
		return nil
	}
	if m := heapName.FindStringSubmatch(text); m != nil {
		h.name(m)
		return nil
	}
	var count, size string
	if m := heapRow.FindStringSubmatch(text); m != nil {
		count, size, h.pending = m[1], m[2], hexes(m[3])
		h.rows++
	} else if m := heapPath.FindStringSubmatch(text); m != nil {
		h.pending, h.waiting = hexes(m[1]), true
		return nil
	} else if m := heapSum.FindStringSubmatch(text); m != nil && h.waiting {
		count, size = m[1], m[2]
	} else {
		return nil
	}
	h.waiting = false
	n, err1 := strconv.ParseInt(count, 10, 64)
	b, err2 := strconv.ParseInt(size, 10, 64)
	if err1 != nil || err2 != nil {
		return errors.New("a value is 2^63 or more")
	}
	if n > 0 {
		n, b = h.scale(n, b)
		h.paths = append(h.paths, heapTextPath{n, b, h.pending})
	}
	return nil
}

// name takes the name of an address of the latest path, less 1: inlined functions are on several
// lines, innermost first.
func (h *heapText) name(m []string) {
	pc := hexes(m[1])[0] + 1
	n := h.names[pc]
	if n == nil {
		n = &heapTextName{path: h.rows}
		h.names[pc] = n
	}
	if number, err := strconv.ParseInt(m[4], 10, 64); err == nil && n.path == h.rows {
		n.lines = append(n.lines, h.builder.line(m[2], m[3], number))
	}
}

// scale returns estimates from sampled values: a block of s bytes is sampled with probability
// 1-exp(-s/rate).
func (h *heapText) scale(count, size int64) (int64, int64) {
	if h.rate <= 1 || size == 0 {
		return count, size
	}
	p := -math.Expm1(-float64(size) / float64(count) / h.rate)
	return int64(math.Round(float64(count) / p)), int64(math.Round(float64(size) / p))
}

// samples names the addresses of the paths.
func (h *heapText) samples() []*profile.Sample {
	list := make([]*profile.Sample, len(h.paths))
	for i, p := range h.paths {
		s := &profile.Sample{Value: []int64{p.count, p.bytes}}
		for _, pc := range h.named(p.pcs) {
			s.Location = append(s.Location, h.at(pc))
		}
		list[i] = s
	}
	return list
}

// named returns a path of Go without the functions of its runtime at both ends, of which Go prints
// only the addresses. A path without any name stays as it is.
func (h *heapText) named(pcs []uint64) []uint64 {
	unnamed := func(pc uint64) bool { return h.names[pc] == nil }
	from := slices.IndexFunc(pcs, func(pc uint64) bool { return !unnamed(pc) })
	if from < 0 {
		return pcs
	}
	for pcs = pcs[from:]; unnamed(pcs[len(pcs)-1]); {
		pcs = pcs[:len(pcs)-1]
	}
	return pcs
}

// at returns the location of a return address.
func (h *heapText) at(pc uint64) *profile.Location {
	if l := h.found[pc]; l != nil {
		return l
	}
	addr := h.process.Resolve(nil, &codec.Stack{PCs: []uint64{pc}}, nil)[0]
	var lines []profile.Line
	if n := h.names[pc]; n != nil {
		lines = n.lines
	}
	for _, f := range addr.Frames() {
		lines = append(lines, h.builder.line(f.Name, f.File, int64(f.Line)))
	}
	if addr.Location == nil || addr.Location.Module == nil {
		l := h.location(pc, "", lines...)
		h.found[pc] = l
		return l
	}
	m := addr.Location.Module
	l := h.location(pc, m.Name, lines...)
	if l.Mapping.Start == 0 {
		l.Mapping.Start, l.Mapping.Limit, l.Mapping.Offset = m.Start, m.End, m.Offset
	}
	h.found[pc] = l
	return l
}

// hexes reads numbers with 0x between spaces.
func hexes(text string) []uint64 {
	var list []uint64
	for _, f := range strings.Fields(text) {
		if v, err := strconv.ParseUint(f[2:], 16, 64); err == nil {
			list = append(list, v)
		}
	}
	return list
}
