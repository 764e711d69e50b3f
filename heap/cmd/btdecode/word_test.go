package main

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// elfOf is an ELF file of one loaded segment, for a machine of 32 or 64 bits.
func elfOf(t *testing.T, word int) string {
	b := []byte("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	le := binary.LittleEndian
	if word == 64 {
		b[4] = byte(elf.ELFCLASS64)
		b = le.AppendUint16(le.AppendUint16(b, uint16(elf.ET_EXEC)), uint16(elf.EM_X86_64))
		b = le.AppendUint32(b, 1)
		b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, 0x400000), 64), 0)
		b = le.AppendUint32(b, 0)
		for _, v := range []uint16{64, 56, 1, 64, 0, 0} {
			b = le.AppendUint16(b, v)
		}
		b = le.AppendUint32(le.AppendUint32(b, uint32(elf.PT_LOAD)), 5)
		for _, v := range []uint64{0, 0x400000, 0x400000, 0x1000, 0x1000, 0x1000} {
			b = le.AppendUint64(b, v)
		}
	} else {
		b = le.AppendUint16(le.AppendUint16(b, uint16(elf.ET_EXEC)), uint16(elf.EM_ARM))
		for _, v := range []uint32{1, 0x400000, 52, 0, 0} {
			b = le.AppendUint32(b, v)
		}
		for _, v := range []uint16{52, 32, 1, 40, 0, 0} {
			b = le.AppendUint16(b, v)
		}
		for _, v := range []uint32{uint32(elf.PT_LOAD), 0, 0x400000, 0x400000, 0x1000, 0x1000, 5, 0x1000} {
			b = le.AppendUint32(b, v)
		}
	}
	b = append(b, make([]byte, 0x1000-len(b))...)
	return tempFile(t, fmt.Sprint("elf", word), string(b))
}

// An ELF file of other addresses than the log is refused, with both named, wherever the
// log tells what it has; and only there.
func TestELFOfAnotherWord(t *testing.T) {
	narrow, wide := elfOf(t, 32), elfOf(t, 64)
	low, high := "~b#size: 1, 0x400010 0x400020\n", "~b#size: 1, 0x7f0000400010 0x7f0000400020\n"
	maps := tempFile(t, "maps", "7f0000400000-7f0000401000 r-xp 0 0:0 1 /x\n")
	markup := "{{{module:0:x:elf:ab}}}\n{{{mmap:%s:0x1000:load:0:rx:0x0}}}\n"
	for name, c := range map[string]struct {
		exe, log string
		args     []string
		says     string // "" if it is not refused
	}{
		"w=64":                       {narrow, "~h#boot w=64\n" + low, nil, "32-bit Arm, but the log is of a 64-bit machine (w=64 at <stdin>:1)"},
		"w=32":                       {wide, "x\n~h#boot prog=a w=32\n" + low, nil, "64-bit x86-64, but the log is of a 32-bit machine (w=32 at <stdin>:2)"},
		"w=32, the next boot not":    {narrow, "~h#boot w=32\n" + low + "~h#boot w=64\n" + low, nil, "64-bit machine (w=64 at <stdin>:3)"},
		"markup":                     {narrow, fmt.Sprintf(markup, "0x7f0000400000") + high, nil, "64-bit machine (its memory map has addresses over 32 bits)"},
		"--maps":                     {narrow, high, []string{"--maps", maps}, "64-bit machine (its memory map has addresses over 32 bits)"},
		"addresses":                  {narrow, high + high + high, nil, "64-bit machine (all addresses up to <stdin>:3 are over 32 bits)"},
		"--machine":                  {narrow, low, []string{"--machine", "wrap64"}, "64-bit machine (machine wrap64)"},
		"w=32, and so is the file":   {narrow, "~h#boot w=32\n" + low, nil, ""},
		"w=64, and so is the file":   {wide, "~h#boot w=64\n" + low + high, nil, ""},
		"not said":                   {narrow, low, nil, ""},
		"a wide file, low addresses": {wide, low + low + low, nil, ""},
		"a damaged record":           {narrow, low + high + high + high, nil, ""},
		"markup of 32 bits":          {narrow, fmt.Sprintf(markup, "0x400000") + low, nil, ""},
		"--machine counts":           {narrow, "~h#boot w=64\n" + low, []string{"--machine", "wrap32"}, ""},
	} {
		out, errs, code := command(c.log, append(c.args, "-e", c.exe)...)
		if c.says == "" {
			if code != 0 || out == "" {
				t.Errorf("%s: exit code %d, %q, %q", name, code, out, errs)
			}
		} else if code != 2 || !strings.Contains(errs, "-e "+c.exe+": ") || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit code %d, %q, want %q", name, code, errs, c.says)
		}
	}
}
