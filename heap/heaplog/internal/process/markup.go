package process

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol"
)

// maxMarkup is the limit for the length of an element, in bytes.
const maxMarkup = 8 << 10

// maxModules is the most modules between two resets, and the most mappings that code offsets
// count.
const maxModules = 1 << 16

var errTooMany = errors.New("more than 65,536 since the last reset")

// Markup applies a part of a log in LLVM's symbolizer markup: {{{reset}}},
// {{{module:ID:NAME:elf:BUILDID}}} and {{{mmap:ADDR:SIZE:load:MODULE:FLAGS:RELATIVE}}}. It
// skips other text. An element may be split over several calls, but ends at a line end. An
// invalid element changes nothing; the returned error joins the errors of all invalid
// elements. boots reports whether a {{{reset}}} begins a boot. (BT-REC-4)
func (p *Process) Markup(text []byte) (boots bool, err error) {
	var bad []error
	for len(text) > 0 {
		if len(p.markup) == 0 { // fast path: most text has no element
			i := bytes.IndexByte(text, '{')
			if i < 0 {
				break
			}
			text = text[i:]
		}
		end := bytes.IndexAny(text, "}\n")
		if end < 0 {
			end = len(text) - 1
		}
		if text[end] == '\n' || len(p.markup)+end >= maxMarkup {
			p.markup = p.markup[:0]
		} else if p.markup = append(p.markup, text[:end+1]...); bytes.HasSuffix(p.markup, []byte("}}}")) {
			if i := bytes.Index(p.markup, []byte("{{{")); i >= 0 {
				element := string(p.markup[i+3 : len(p.markup)-3])
				if element == "reset" {
					boots = p.reset() || boots
				} else if err := p.element(element); err != nil {
					bad = append(bad, fmt.Errorf("{{{%s}}}: %w", printable.Text(element), err))
				}
			}
			p.markup = p.markup[:0]
		}
		text = text[end+1:]
	}
	return boots, errors.Join(bad...)
}

func (p *Process) element(text string) error {
	f := strings.Split(text, ":")
	switch f[0] {
	case "module":
		return p.module(f)
	case "mmap":
		return p.mmap(f)
	}
	return nil
}

func (p *Process) module(f []string) error {
	if len(f) < 5 || f[3] != "elf" {
		return fmt.Errorf("expected module:ID:NAME:elf:BUILDID")
	}
	id, err := markupNumber(f[1])
	if err != nil {
		return fmt.Errorf("module %q: expected a number", f[1])
	}
	if strings.Trim(f[4], "0123456789abcdefABCDEF") != "" {
		return fmt.Errorf("build-id %q: expected hexadecimal digits", f[4])
	}
	if len(p.modules) >= maxModules {
		return errTooMany
	}
	if p.modules == nil {
		p.modules = map[uint64]*symbol.Module{}
	}
	p.modules[id] = &symbol.Module{Name: unescape(f[2]), BuildID: strings.ToLower(f[4]), Logged: true}
	return nil
}

// markupNumber reads a number in decimal, or in hexadecimal after 0x.
func markupNumber(text string) (uint64, error) {
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		return strconv.ParseUint(digits, 16, 64)
	}
	return strconv.ParseUint(text, 10, 64)
}

// unescape replaces the escapes of a name, such as %3A for a colon. It leaves escapes of
// control characters unchanged.
func unescape(name string) string {
	if !strings.Contains(name, "%") {
		return name
	}
	var out []byte
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '%' && i+2 < len(name) {
			if v, err := strconv.ParseUint(name[i+1:i+3], 16, 8); err == nil && v >= ' ' && v != 0x7f {
				c, i = byte(v), i+2
			}
		}
		out = append(out, c)
	}
	return string(out)
}

func (p *Process) mmap(f []string) error {
	if len(f) < 7 || f[3] != "load" {
		return fmt.Errorf("expected mmap:ADDR:SIZE:load:MODULE:FLAGS:RELATIVE")
	}
	var n [4]uint64
	for i, at := range []int{1, 2, 4, 6} {
		var err error
		if n[i], err = markupNumber(f[at]); err != nil {
			return fmt.Errorf("%q: expected a number", f[at])
		}
	}
	module := p.modules[n[2]]
	if module == nil {
		return fmt.Errorf("module %d was not introduced since the last reset", n[2])
	}
	if n[0]+n[1] < n[0] {
		return fmt.Errorf("%#x bytes from %#x pass the end of memory", n[1], n[0])
	}
	m := symbol.Mapping{Start: n[0], End: n[0] + n[1], Exec: strings.Contains(f[5], "x"), Module: module, Offset: n[3], Relative: true}
	p.addCode(m)
	p.note(m)
	return p.Add(m)
}
