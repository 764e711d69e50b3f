package main

import (
	"bytes"
	"regexp"
	"strconv"

	"github.com/lwsbt/lwsbt/symbol"
)

// panicForms are the lines that firmware and programs print in a panic: a text that is in each, and an
// expression whose last group is an address, or several with other text between them. An address without 0x has
// 8 digits.
var panicForms = []struct {
	text string
	expr *regexp.Regexp
}{
	{"acktrace", regexp.MustCompile(`(?i)\bbacktrace\s*[:|](.*)$`)},                                                                                              // ESP-IDF, NuttX
	{"PC", regexp.MustCompile(`abort\(\) was called at PC (0x[0-9a-f]{8})`)},                                                                                     // ESP-IDF
	{"epc1=", regexp.MustCompile(`\bepc1=(0x[0-9a-f]{8})`)},                                                                                                      // ESP8266
	{"4", regexp.MustCompile(`^[ >]*3fff[0-9a-f]{4}:((?: +[0-9a-f]{8}){4})`)},                                                                                    // its stack
	{"(", regexp.MustCompile(`\((?:\w+)?\+0x[0-9a-f]+\) ?\[(0x[0-9a-f]{5,16})\]`)},                                                                               // glibc's backtrace_symbols
	{"0x", regexp.MustCompile(`(?:^|[\s:])(?:#\d+|\d{1,3}:)\s*:?\s*(?:fp:\s*0x[0-9a-fA-F]+\s*)?(?:[rR][aA]:?\s*|[pP][cC]:?\s*)?(?:\[?)(0x[0-9a-fA-F]{5,16})\b`)}, // Zephyr, gdb
	{"", regexp.MustCompile(`(?i)(?:faulting instruction address[^:]*:|\b(?:PC|LR|RA|MEPC|EPC1)\s*[:=])\s*((?:0x[0-9a-f]{5,16}|[0-9a-f]{8})\b)`)},                // registers: Zephyr, ESP32, Mbed, HardFault handlers
}

var (
	address  = regexp.MustCompile(`0x([0-9a-fA-F]{5,16})(?::0x[0-9a-fA-F]+)?`)
	bare     = regexp.MustCompile(`\b([0-9a-fA-F]{8})\b`)
	code8266 = regexp.MustCompile(`\b(40[0-2][0-9a-f]{5})\b`) // in a stack of the ESP8266
)

// maxPanic is the longest examined line, in bytes.
const maxPanic = 4096

// maxPanicAddrs is the number of addresses of a line.
const maxPanicAddrs = 128

// panicAddrs returns the code addresses in a line of a panic, nil in other lines. own is the expression
// of --panic-line, or nil.
func panicAddrs(dst []uint64, line []byte, own *regexp.Regexp) []uint64 {
	if len(line) > maxPanic {
		return dst
	}
	if own != nil {
		if dst = appendAddrs(dst, own.FindAllSubmatch(line, maxPanicAddrs)); len(dst) > 0 {
			return dst
		}
	}
	for _, f := range panicForms {
		if f.text == "" && !bytes.ContainsAny(line, ":=") || !bytes.Contains(line, []byte(f.text)) {
			continue
		}
		if dst = appendAddrs(dst, f.expr.FindAllSubmatch(bytes.TrimRight(line, "\r\n"), 4)); len(dst) > 0 {
			break
		}
	}
	return dst
}

// appendAddrs appends the addresses in the last groups of matches.
func appendAddrs(dst []uint64, matches [][][]byte) []uint64 {
	for _, m := range matches {
		text := m[len(m)-1]
		list := address.FindAllSubmatch(text, maxPanicAddrs)
		switch {
		case list != nil:
		case len(text) > 16:
			list = code8266.FindAllSubmatch(text, maxPanicAddrs)
		default:
			list = bare.FindAllSubmatch(text, 1)
		}
		for _, a := range list {
			if v, err := strconv.ParseUint(string(a[1]), 16, 64); err == nil {
				dst = append(dst, v)
			}
		}
	}
	return dst
}

// appendPanic appends the frames of the addresses in a line of a panic.
func (t *textSink) appendPanic(b, line []byte) []byte {
	t.pcs = panicAddrs(t.pcs[:0], line, t.panicLine)
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
	own   *regexp.Regexp // of --panic-line
	line  []byte         // unfinished line
	read  int
	found bool
}

// maxPanicText is the length of the text in which a panicFinder looks.
const maxPanicText = 1 << 20

func (f *panicFinder) text(p []byte) {
	if len(p) == 1 && len(f.line) == 0 { // the line feed behind a record
		return
	}
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
	f.found = f.found || len(panicAddrs(nil, f.line, f.own)) > 0
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
