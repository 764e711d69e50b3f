package symbol

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Markup applies what a line of a log says in LLVM's symbolizer markup:
// {{{reset}}}, {{{module:ID:NAME:elf:BUILDID}}} and
// {{{mmap:ADDR:SIZE:load:MODULE:FLAGS:RELATIVE}}}. Other elements are none of its
// business. The error is of the first element that was not understood; it and
// what is wrong with it change nothing.
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
			err = fmt.Errorf("{{{%s}}}: %w", line[:end], e)
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
	id, err := strconv.ParseUint(f[1], 0, 64)
	if err != nil {
		return fmt.Errorf("module %q: expected a number", f[1])
	}
	if t.modules == nil {
		t.modules = map[uint64]*Module{}
	}
	t.modules[id] = &Module{Name: f[2], BuildID: strings.ToLower(f[4])}
	t.told = true
	return nil
}

func (t *Timeline) mmap(f []string) error {
	if len(f) < 7 || f[3] != "load" {
		return fmt.Errorf("expected mmap:ADDR:SIZE:load:MODULE:FLAGS:RELATIVE")
	}
	var n [4]uint64
	for i, at := range []int{1, 2, 4, 6} {
		var err error
		if n[i], err = strconv.ParseUint(f[at], 0, 64); err != nil {
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
	t.Map(Mapping{Start: n[0], End: n[0] + n[1], Exec: strings.Contains(f[5], "x"), Module: module,
		Offset: n[3], Own: true})
	return nil
}
