package main

import (
	"bytes"
	"regexp"
	"strconv"

	"github.com/lwsbt/lwsbt/symbol"
)

// Patterns for the backtraces that firmware prints in a panic: the words before the addresses,
// and each address. ESP-IDF has "Backtrace: 0xPC:0xSP 0xPC:0xSP", NuttX "backtrace|
// 0: 0xPC 0xPC" and "[CPU0] backtrace: 0xPC", Zephyr "#0 : ra: 0xPC", "0: fp: 0x… ra:
// 0xPC" and "Faulting instruction address (r15/pc): 0xPC", ESP32's registers "PC : 0xPC".
var (
	listed    = regexp.MustCompile(`(?i)\bbacktrace\s*[:|]`)
	numbered  = regexp.MustCompile(`(?:^|[\s:])(?:#\d+|\d{1,3}:)\s*:?\s*(?:fp:\s*0x[0-9a-fA-F]+\s*)?(?:[rR][aA]:?\s*|[pP][cC]:?\s*)?(?:\[?)(0x[0-9a-fA-F]{5,16})\b`)
	faulting  = regexp.MustCompile(`(?i)(?:faulting instruction address[^:]*:|\b(?:PC|LR|RA|MEPC|EPC1)\s*:)\s*(0x[0-9a-f]{5,16})\b`)
	addresses = regexp.MustCompile(`(0x[0-9a-fA-F]{5,16})(?::0x[0-9a-fA-F]+)?`)
)

// maxPanic is the longest examined line, in bytes.
const maxPanic = 4096

// panicAddrs returns the code addresses in a line of a panic, nil in other lines.
func panicAddrs(dst []uint64, line []byte) []uint64 {
	if len(line) > maxPanic || !bytes.Contains(line, []byte("0x")) {
		return dst
	}
	add := func(m [][][]byte) {
		for _, a := range m {
			if v, err := strconv.ParseUint(string(a[1][2:]), 16, 64); err == nil {
				dst = append(dst, v)
			}
		}
	}
	if at := listed.FindIndex(line); at != nil {
		add(addresses.FindAllSubmatch(line[at[1]:], 128))
		return dst
	}
	if m := numbered.FindAllSubmatch(line, 4); m != nil {
		add(m)
		return dst
	}
	add(faulting.FindAllSubmatch(line, 4))
	return dst
}

// appendPanic appends the frames of the addresses in a line of a panic.
func (t *textSink) appendPanic(b, line []byte) []byte {
	t.pcs = panicAddrs(t.pcs[:0], line)
	if len(t.pcs) == 0 {
		return b
	}
	var found []symbol.Addr
	any := false
	for _, pc := range t.pcs {
		a := t.locate(pc)
		found = append(found, a)
		any = any || len(a.Frames()) > 0
	}
	if !any { // the line is not a backtrace
		return b
	}
	t.panics++
	return t.appendFrames(b, found)
}

// panicFinder looks for a line of a panic in the first megabyte of text.
type panicFinder struct {
	line  []byte // unfinished line
	read  int
	found bool
}

// maxPanicText is the length of the text in which a panicFinder looks.
const maxPanicText = 1 << 20

func (f *panicFinder) text(p []byte) {
	for len(p) > 0 && !f.found && f.read < maxPanicText {
		end := bytes.IndexByte(p, '\n') + 1
		part := p[:end]
		if end == 0 {
			part = p
		}
		f.read += len(part)
		if len(f.line) <= maxPanic {
			f.line = append(f.line, part...)
		}
		if p = p[len(part):]; end > 0 {
			f.end()
		}
	}
}

// end examines the line.
func (f *panicFinder) end() {
	f.found = f.found || len(panicAddrs(nil, f.line)) > 0
	f.line = f.line[:0]
}

// hint returns how to name the addresses of a panic, "" if there is none. named reports whether there is
// something that names addresses.
func (f *panicFinder) hint(passthrough, named bool) string {
	switch f.end(); {
	case !f.found:
		return ""
	case passthrough && named:
		return "it has a panic, of whose addresses none has a name: give -e with the build that ran"
	}
	return "it has a panic: --passthrough -e ELF names its addresses"
}
