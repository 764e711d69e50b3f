package heapfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/google/pprof/profile"
)

func isHeaptrack(head []byte) bool {
	first, rest, ok := bytes.Cut(head, []byte("\n"))
	return ok && bytes.HasPrefix(first, []byte("v ")) && (bytes.HasPrefix(rest, []byte("X ")) || bytes.HasPrefix(rest, []byte("x ")))
}

// heaptrack reads what heaptrack_interpret writes, file versions 1 to 3: a letter and
// hexadecimal numbers in each line (analyze/accumulatedtracedata.cpp of heaptrack).
type heaptrack struct {
	*builder
	version int64
	strings []string
	ips     []*profile.Location
	traces  []heaptrackTrace
	blocks  []heaptrackBlock
	live    int64 // bytes
	peak    int64 // maximum of live
	epoch   int64 // number of increases of peak
}

// heaptrackTrace is a node of the tree of call paths.
type heaptrackTrace struct{ ip, parent int }

// heaptrackBlock is all allocations of a size and call path.
type heaptrackBlock struct {
	size, trace, live int64
	// before is the value of live before its first change after the peak of epoch.
	before, epoch int64
}

// readHeaptrack reads a file as the live blocks at the peak and at the end.
func readHeaptrack(r io.Reader) ([]Profile, error) {
	h := &heaptrack{builder: newBuilder()}
	if err := readLines(r, h.line); err != nil {
		return nil, err
	}
	peak, err := h.samples(func(b *heaptrackBlock) int64 {
		if b.epoch == h.epoch {
			return b.before
		}
		return b.live
	})
	if err != nil {
		return nil, err
	}
	end, err := h.samples(func(b *heaptrackBlock) int64 { return b.live })
	return []Profile{{peak, "peak"}, {end, "end"}}, err
}

// line reads a line. It ignores lines with other letters: times, page sizes, memory of the
// process, suppressions.
func (h *heaptrack) line(text []byte) error {
	if len(text) < 2 || text[1] != ' ' {
		return nil
	}
	kind, rest := text[0], text[2:]
	switch kind {
	case 's':
		return h.str(rest)
	case 'v', 'i', 't', 'a', '+', '-':
	default:
		return nil
	}
	v, err := hexFields(rest)
	if err != nil {
		return err
	}
	switch {
	case kind == 'v':
		if h.version = 1; len(v) > 1 {
			h.version = v[1]
		}
		if h.version < 1 || h.version > 3 {
			return fmt.Errorf("file version %d, expected 1 to 3", h.version)
		}
	case h.version == 0:
		return errors.New("expected the file version first")
	case kind == 'i':
		return h.ip(v)
	case kind == 't':
		if len(v) != 2 || v[0] < 1 || v[0] > int64(len(h.ips)) || v[1] < 0 || v[1] > int64(len(h.traces)) {
			return errors.New("a trace of an instruction pointer or trace that is not above")
		}
		h.traces = append(h.traces, heaptrackTrace{int(v[0]), int(v[1])})
	case kind == 'a':
		if len(v) != 2 || v[0] < 0 || v[1] < 0 || v[1] > int64(len(h.traces)) {
			return errors.New("an allocation of a trace that is not above")
		}
		h.blocks = append(h.blocks, heaptrackBlock{size: v[0], trace: v[1], epoch: -1})
	default:
		return h.event(kind, v)
	}
	if len(h.ips)+len(h.traces)+len(h.blocks) > maxParts {
		return errTooLarge
	}
	return nil
}

// str reads a string. From version 3 on, the length precedes the string.
func (h *heaptrack) str(text []byte) error {
	if h.version >= 3 {
		length, s, ok := bytes.Cut(text, []byte(" "))
		n, err := strconv.ParseInt(string(length), 16, 32)
		if !ok || err != nil || int(n) != len(s) {
			return fmt.Errorf("a string of %d bytes, announced as %.8q", len(s), length)
		}
		text = s
	}
	h.strings = append(h.strings, string(text))
	return nil
}

// ip reads an instruction pointer: address, module, function, file and line, and again
// these three for each function into which it is inlined.
func (h *heaptrack) ip(v []int64) error {
	if len(v) < 2 {
		return errors.New("an instruction pointer without a module")
	}
	module, err := h.at(v[1])
	if err != nil {
		return err
	}
	var lines []profile.Line
	for rest := v[2:]; len(rest) > 0; {
		name, err := h.at(rest[0])
		if err != nil {
			return err
		}
		file, number := "", int64(0)
		if len(rest) >= 3 {
			if file, err = h.at(rest[1]); err != nil {
				return err
			}
			number = rest[2]
		}
		if name != "" {
			lines = append(lines, h.builder.line(name, file, number))
		}
		rest = rest[min(3, len(rest)):]
	}
	h.ips = append(h.ips, h.location(uint64(v[0]), module, lines...))
	return nil
}

// at returns string n, from 1; 0 is none.
func (h *heaptrack) at(n int64) (string, error) {
	switch {
	case n == 0:
		return "", nil
	case n < 0 || n > int64(len(h.strings)):
		return "", fmt.Errorf("string %d, and there are %d", n, len(h.strings))
	}
	return h.strings[n-1], nil
}

// event reads an allocation or a free.
func (h *heaptrack) event(kind byte, v []int64) error {
	if len(v) != 1 || v[0] < 0 || v[0] >= int64(len(h.blocks)) {
		return errors.New("an event of an allocation that is not above")
	}
	b := &h.blocks[v[0]]
	if b.epoch != h.epoch {
		b.before, b.epoch = b.live, h.epoch
	}
	if kind == '-' {
		b.live--
		h.live -= b.size
		return nil
	}
	b.live++
	if h.live += b.size; h.live > h.peak {
		h.peak = h.live
		h.epoch++
	}
	return nil
}

// samples returns the profile of one moment. It omits negative numbers of live blocks, which
// occur in a recording that was attached to a running program and has frees of older blocks.
func (h *heaptrack) samples(live func(*heaptrackBlock) int64) (*profile.Profile, error) {
	byTrace := map[int64]*profile.Sample{}
	var samples []*profile.Sample
	frames := 0
	for i := range h.blocks {
		b := &h.blocks[i]
		n := live(b)
		if n <= 0 {
			continue
		}
		s := byTrace[b.trace]
		if s == nil {
			s = &profile.Sample{Value: []int64{0, 0}}
			for t := b.trace; t > 0; t = int64(h.traces[t-1].parent) {
				s.Location = append(s.Location, h.ips[h.traces[t-1].ip-1])
			}
			if frames += len(s.Location); frames > maxParts {
				return nil, fmt.Errorf("over %d frames: %w", maxParts, errTooLarge)
			}
			byTrace[b.trace] = s
			samples = append(samples, s)
		}
		s.Value[0] += n
		s.Value[1] += n * b.size
	}
	return h.with(samples), nil
}

// hexFields reads hexadecimal numbers.
func hexFields(text []byte) ([]int64, error) {
	fields := bytes.Fields(text)
	v := make([]int64, len(fields))
	for i, f := range fields {
		n, err := strconv.ParseUint(string(f), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%.20q, expected a hexadecimal number", f)
		}
		v[i] = int64(n)
	}
	return v, nil
}
