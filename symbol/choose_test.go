package symbol

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"
)

// candidate writes a firmware of i386 with calls at the offsets given, each of two bytes, in a function.
func candidate(t *testing.T, fn string, calls ...int) string {
	code := bytes.Repeat([]byte{0x90, 0x90}, 40)
	for _, at := range calls {
		copy(code[at:], []byte{0xff, 0xd0}) // call *%eax
	}
	return tinyELF(t, elf.EM_386, 0x1000, code, fn)
}

// seen has return addresses, each of n records.
func seen(n int, offsets ...uint64) Evidence {
	e := Evidence{Memory: map[ReturnAddr]int{}}
	for _, x := range offsets {
		e.Memory[ReturnAddr{PC: 0x1000 + x}] = n
	}
	return e
}

// A boot uses the candidate of its build, else of its version, else the only one whose code fits, in both
// orders of the files.
func TestChoose(t *testing.T) {
	a, b := candidate(t, "first", 0, 10, 20), candidate(t, "second", 4, 14, 20)
	damaged := seen(100, 6, 16)
	for x := range uint64(20) { // lines damaged on the way, each in its own way
		damaged.Memory[ReturnAddr{PC: 0x1021 + x}] = 1
	}
	for name, c := range map[string]struct {
		ids   [2]string // build IDs of the two
		boot  Boot
		seen  Evidence
		want  string // function at 0x1016, "" for none
		notes string
	}{
		"build ID":                       {[2]string{"aaaaaaaaaaaa", "bbbbbbbbbbbb"}, Boot{Build: "bbbbbbbbbbbb"}, Evidence{}, "second", ""},
		"build ID, whatever fits":        {[2]string{"aaaaaaaaaaaa", "bbbbbbbbbbbb"}, Boot{Build: "aaaaaaaaaaaa"}, seen(9, 6, 16), "first", ""},
		"the beginning of a build ID":    {[2]string{"aaaaaaaaaaaa", "bbbbbbbbbbbb"}, Boot{Build: "bbbbbbbb"}, Evidence{}, "second", ""},
		"a build ID without a character": {[2]string{"0123456789abcdef0123", "0123456789abcdef3210"}, Boot{Build: "012345678abcdef3210"}, seen(9, 6, 16), "second", ""},
		"another build ID":               {[2]string{"aaaaaaaaaaaa", "bbbbbbbbbbbb"}, Boot{Build: "cccccccccccc"}, seen(9, 6, 16), "", "build cccccccccccc ran; "},
		"only the code":                  {[2]string{}, Boot{}, seen(9, 6, 16), "second", ""},
		"the code of both":               {[2]string{}, Boot{}, seen(9, 22), "", "no build= says which of these ran"},
		"the code of none":               {[2]string{}, Boot{Firmware: "1.4"}, seen(9, 8, 18), "", "firmware 1.4 ran, and is none of these"},
		"nothing yet":                    {[2]string{}, Boot{}, Evidence{}, "", ""},
		"the code, of damaged lines":     {[2]string{}, Boot{}, damaged, "second", ""},
	} {
		for _, swap := range []bool{false, true} {
			files := []string{a, b}
			if swap {
				files = []string{b, a}
			}
			var config Config
			for _, f := range files {
				config.Files = append(config.Files, FileSpec{Path: f})
			}
			config.Check = true
			p := configured(t, config)
			for _, o := range p.added {
				o.file.BuildID = c.ids[0]
				if o.file.Path == b {
					o.file.BuildID = c.ids[1]
				}
			}
			choice := p.Choose(c.boot, c.seen)
			p.Use(choice)
			got := ""
			if f := p.Locate(0x1016).Frames(); len(f) > 0 {
				got = f[0].Func
			}
			if got != c.want {
				t.Errorf("%s, swapped %v: %q, want %q", name, swap, got, c.want)
			}
			if text := strings.Join(choice.Notes, "\n"); !strings.Contains(text, c.notes) || c.notes == "" && text != "" {
				t.Errorf("%s, swapped %v: notes %q, want %q", name, swap, text, c.notes)
			}
		}
	}
}

// One file is rejected by few addresses only if they are repeated, and never by damaged lines.
func TestChooseOne(t *testing.T) {
	file := candidate(t, "first", 0, 10, 20)
	for name, c := range map[string]struct {
		seen  Evidence
		check bool
		named bool
		note  string
	}{
		"two addresses of one record":       {seen(1, 4, 14), true, true, ""},
		"two addresses of many records":     {seen(9, 4, 14), true, false, "only 0 of 2 addresses in its code follow a call"},
		"three that follow calls":           {seen(9, 2, 12, 22), true, true, ""},
		"many addresses of single records":  {seen(1, 4, 6, 8, 14, 16), true, false, "only 0 of 5"},
		"two addresses of many, with force": {seen(9, 4, 14), false, true, "its names may be wrong"},
	} {
		p := configured(t, Config{Files: []FileSpec{{Path: file}}, Check: c.check})
		choice := p.Choose(Boot{}, c.seen)
		p.Use(choice)
		if named := len(p.Locate(0x1002).Frames()) > 0; named != c.named {
			t.Errorf("%s: named %v", name, named)
		}
		if text := strings.Join(append(choice.Notes, choice.Forced...), "\n"); !strings.Contains(text, c.note) || c.note == "" && text != "" {
			t.Errorf("%s: notes %q, want %q", name, text, c.note)
		}
	}
}

// An address without a name is another one in another build.
func TestBuildOfUnknownAddress(t *testing.T) {
	p := configured(t, Config{Files: []FileSpec{{Path: candidate(t, "first", 0)}}, Check: true})
	p.added[0].file.BuildID = "bbbb"
	p.Use(p.Choose(Boot{Build: "aaaa"}, Evidence{}))
	if a := p.Locate(0x1002); a.Location == nil || a.Location.Build != "aaaa" || a.String() != "0x1002" {
		t.Errorf("%+v", a)
	}
}
