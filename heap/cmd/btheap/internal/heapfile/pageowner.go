package heapfile

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// The text of /sys/kernel/debug/page_owner (mm/page_owner.c, Linux 4.6 to 6.12), and the
// output of tools/mm/page_owner_sort, which puts a count before each group.
var (
	ownerPage  = regexp.MustCompile(`Page allocated via order (\d+),`)
	ownerTimes = regexp.MustCompile(`^(\d+) times(?:, (\d+) pages)?`)
	ownerFrame = regexp.MustCompile(`^\s+(?:\[<([0-9a-fA-F]+)>\] )?([^\s+]+)\+0x([0-9a-fA-F]+)/0x[0-9a-fA-F]+(?: \[(\S+)\])?`)
)

// pageSize is the size of a page of order 0 in bytes. The file does not have it; it is larger
// on some machines.
const pageSize = 4096

func isPageOwner(head []byte) bool {
	return ownerPage.Match(head) && (bytes.HasPrefix(head, []byte("Page allocated")) || ownerTimes.Match(head))
}

// readPageOwner reads each page as a block.
func readPageOwner(r io.Reader) (*profile.Profile, error) {
	o := &pageOwner{functions: map[profile.Function]*profile.Function{}, mappings: map[string]*profile.Mapping{},
		locations: map[string]*profile.Location{}, samples: map[string]*profile.Sample{}}
	o.SampleType = []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}}
	if err := readLines(r, o.line); err != nil {
		return nil, err
	}
	o.flush()
	return &o.Profile, nil
}

type pageOwner struct {
	profile.Profile
	functions map[profile.Function]*profile.Function
	mappings  map[string]*profile.Mapping  // by module
	locations map[string]*profile.Location // by name, offset and module
	samples   map[string]*profile.Sample   // by stack
	times     int64                        // number of occurrences of the next page
	order     int                          // order of the current page, -1 if none
	pages     int64                        // number of pages with the current stack, 0 if none
	stack     []*profile.Location
	key       strings.Builder
}

func (o *pageOwner) line(data []byte) error {
	text := string(data)
	if m := ownerTimes.FindStringSubmatch(text); m != nil {
		o.flush()
		o.times, _ = strconv.ParseInt(m[1], 10, 32)
		return nil
	}
	if m := ownerPage.FindStringSubmatch(text); m != nil {
		o.flush()
		order, err := strconv.Atoi(m[1])
		if err != nil || order > 30 {
			return fmt.Errorf("order %s, expected 0 to 30", m[1])
		}
		o.order, o.pages = order, max(o.times, 1)
		o.times = 0
		return nil
	}
	if m := ownerFrame.FindStringSubmatch(text); m != nil && o.pages > 0 {
		o.frame(m[1], m[2], m[3], m[4])
	}
	return nil
}

func (o *pageOwner) frame(address, name, offset, module string) {
	key := name + "+" + offset + " " + module
	l := o.locations[key]
	if l == nil {
		pc, _ := strconv.ParseUint(address, 16, 64)
		l = &profile.Location{ID: uint64(len(o.Location) + 1), Address: pc, Mapping: o.mapping(module), Line: []profile.Line{{Function: function(&o.Profile, o.functions, name, "")}}}
		o.locations[key] = l
		o.Location = append(o.Location, l)
	}
	o.stack = append(o.stack, l)
	o.key.WriteString(key + "\n")
}

// mapping returns the mapping of a module, nil for the kernel itself.
func (o *pageOwner) mapping(module string) *profile.Mapping {
	m := o.mappings[module]
	if m == nil && module != "" {
		m = &profile.Mapping{ID: uint64(len(o.Mapping) + 1), File: module, HasFunctions: true}
		o.mappings[module] = m
		o.Mapping = append(o.Mapping, m)
	}
	return m
}

// flush adds the pages that were read.
func (o *pageOwner) flush() {
	if o.pages > 0 {
		s := o.samples[o.key.String()]
		if s == nil {
			s = &profile.Sample{Location: o.stack, Value: []int64{0, 0}}
			o.samples[o.key.String()] = s
			o.Sample = append(o.Sample, s)
		}
		s.Value[0] += o.pages
		s.Value[1] += o.pages * pageSize << o.order
	}
	o.pages, o.stack = 0, nil
	o.key.Reset()
}
