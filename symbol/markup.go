package symbol

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/internal/printable"
)

// Markup applies what a line of a log says in LLVM's symbolizer markup: {{{reset}}},
// {{{module:ID:NAME:elf:BUILDID}}} and {{{mmap:ADDR:SIZE:load:MODULE:FLAGS:RELATIVE}}}.
// Other elements are skipped. (BT-REC-4) The error is that of the first invalid element; invalid
// elements change nothing.
func (t *Timeline) Markup(line []byte) (err error) {
	for {
		i := bytes.Index(line, []byte("{{{"))
		if i < 0 {
			return err
		}
		line = line[i+3:]
		end := bytes.Index(line, []byte("}}}"))
		if end < 0 {
			return err
		}
		if e := t.element(string(line[:end])); e != nil && err == nil {
			err = fmt.Errorf("{{{%s}}}: %w", printable.Text(string(line[:end])), e)
		}
		line = line[end+3:]
	}
}

func (t *Timeline) element(text string) error {
	f := strings.Split(text, ":")
	switch f[0] {
	case "reset":
		t.Reset()
	case "module":
		return t.module(f)
	case "mmap":
		return t.mmap(f)
	}
	return nil
}

func (t *Timeline) module(f []string) error {
	if len(f) < 5 || f[3] != "elf" {
		return fmt.Errorf("expected module:ID:NAME:elf:BUILDID")
	}
	id, err := markupNumber(f[1])
	if err != nil {
		return fmt.Errorf("module %q: expected a number", f[1])
	}
	if !isHex(f[4]) {
		return fmt.Errorf("build-id %q: expected hexadecimal digits", f[4])
	}
	if len(t.modules) >= maxMapped {
		return errTooMany
	}
	if t.modules == nil {
		t.modules = map[uint64]*Module{}
	}
	t.modules[id] = &Module{Name: unescape(f[2]), BuildID: strings.ToLower(f[4]), Logged: true}
	return nil
}

// markupNumber reads a number in decimal, or in hexadecimal after 0x.
func markupNumber(text string) (uint64, error) {
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		return strconv.ParseUint(digits, 16, 64)
	}
	return strconv.ParseUint(text, 10, 64)
}

// unescape reads the escapes of a name, as %3A for a colon. Control characters stay as
// they are written: no file is called so by somebody who means well.
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

// isHex reports whether s is made of hexadecimal digits, or empty.
func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

func (t *Timeline) mmap(f []string) error {
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
	module := t.modules[n[2]]
	if module == nil {
		return fmt.Errorf("module %d was not introduced since the last reset", n[2])
	}
	if n[0]+n[1] < n[0] {
		return fmt.Errorf("%#x bytes from %#x pass the end of memory", n[1], n[0])
	}
	return t.Map(Mapping{Start: n[0], End: n[0] + n[1], Exec: strings.Contains(f[5], "x"), Module: module,
		Offset: n[3], Relative: true})
}

// MarkupWriter applies the symbolizer markup in the text of a log that is written
// to it. An element stands in one line and counts from its end on; it may come in
// several writes.
type MarkupWriter struct {
	Timeline *Timeline
	Bad      func(error) // called for each element that was not understood; may be nil

	begun []byte // from a '{' on, what may become an element
}

// maxMarkup is more than any element has, in bytes.
const maxMarkup = 8 << 10

// Write reads p; it takes all of it and never fails.
func (w *MarkupWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if len(w.begun) == 0 { // most text has no element: this search is all it costs
			i := bytes.IndexByte(p, '{')
			if i < 0 {
				break
			}
			p = p[i:]
		}
		end := bytes.IndexAny(p, "}\n")
		if end < 0 {
			end = len(p) - 1
		}
		switch last := p[end]; {
		case last == '\n', len(w.begun)+end >= maxMarkup:
			w.begun = w.begun[:0]
		default:
			w.begun = append(w.begun, p[:end+1]...)
			if bytes.HasSuffix(w.begun, []byte("}}}")) {
				if err := w.Timeline.Markup(w.begun); err != nil && w.Bad != nil {
					w.Bad(err)
				}
				w.begun = w.begun[:0]
			}
		}
		p = p[end+1:]
	}
	return n, nil
}

// Reset forgets an element that was begun, as at the end of a log.
func (w *MarkupWriter) Reset() { w.begun = w.begun[:0] }
