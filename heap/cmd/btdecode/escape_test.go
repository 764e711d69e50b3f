package main

import (
	"strings"
	"testing"
)

// Names that a log chooses move no cursor and end no line, in any format, nor in notes.
func TestNamesOfALog(t *testing.T) {
	log := "~h#boot prog=\x1b]0;owned\x07\n{{{module:0:/lib/\x1b[2J\r~b#x\u009b1m:elf:ab}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0x0}}}\n" +
		"{{{module:\x1b[31m:x:elf:ab}}}\n~b#size: 1, 0x1001 0x1101\n~m#\x1b[31mAAAA\n"
	for _, args := range [][]string{nil, {"-F", "jsonl"}, {"--maps",
		tempFile(t, "maps", "1000-2000 r-xp 0 0:0 1 /lib/\x1b[2J\r~b#x\n")}} {
		out, errs, _ := command(log, args...)
		if out == "" || strings.ContainsAny(out+errs, "\x1b\x07\r\u009b") {
			t.Errorf("%v:\n%q\n%q", args, out, errs)
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "~b#x") {
				t.Errorf("%v: a forged record: %q", args, line)
			}
		}
	}
}
