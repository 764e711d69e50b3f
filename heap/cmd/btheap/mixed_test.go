package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// deviceDumps returns the dumps of a device, 10 minutes apart: 30 call paths whose blocks vary, and one that leaks so many
// blocks of 64 bytes per dump.
func deviceDumps(seed uint64, name string, n, leak int) (dumps [][]string) {
	r := rand.New(rand.NewPCG(seed, seed))
	for d := range n {
		var blocks []string
		for path := range 30 {
			for range 2 + path%5 + r.IntN(2) {
				blocks = append(blocks, fmt.Sprintf("~b#size: %d, %#x 0x8003000\n", 16+8*path, 0x8001000+16*path))
			}
		}
		blocks = append(blocks, slices.Repeat([]string{"~b#size: 64, 0x8000100 0x8003000\n"}, 5+leak*d)...)
		lines := []string{fmt.Sprintf("~h#begin %d t=%d\n", d, d*600_000_000)}
		if d == 0 {
			lines = []string{"~h#boot dev=" + name + "\n", lines[0]}
		}
		dumps = append(dumps, append(append(lines, blocks...), fmt.Sprintf("~h#end %d n=%d\n", d, len(blocks))))
	}
	return dumps
}

// Of a log that mixes two devices, one of which leaks, nothing is judged; of one that has first the one and then the other, the
// last. The log of one of them leaks, also with parts that the serial line repeated.
func TestMixedDevices(t *testing.T) {
	leaks, none := deviceDumps(1, "d1", 40, 3), deviceDumps(2, "d2", 40, 0)
	var byDump, byLine, repeated []string
	for d := range leaks {
		byDump = append(append(byDump, leaks[d]...), none[d]...)
		for i := range max(len(leaks[d]), len(none[d])) {
			for _, lines := range [][]string{leaks[d], none[d]} {
				byLine = append(byLine, lines[min(i, len(lines)):min(i+1, len(lines))]...)
			}
		}
		repeated = append(repeated, leaks[d]...)
		if d%13 == 12 {
			repeated = append(repeated, repeated[len(repeated)-200:]...)
		}
	}
	for name, c := range map[string]struct {
		lines []string
		code  int
		want  string
	}{
		"by dump": {byDump, 2, "the log mixes dumps of several devices"}, "by line": {byLine, 2, "the log mixes dumps of several devices"},
		"alone": {slices.Concat(leaks...), 0, "+1,152 bytes per hour"}, "other": {slices.Concat(none...), 0, "none above"}, "repeated": {repeated, 0, "1 leak"},
		"leak last": {slices.Concat(append(none, leaks...)...), 0, "1 leak"}, "leak first": {slices.Concat(append(leaks, none...)...), 0, "of device d1, the last one is of d2"},
	} {
		out, errs, code := command("", "leaks", "-q", logFile(t, "all.log", strings.Join(c.lines, "")))
		if code != c.code || !strings.Contains(out+errs, c.want) || strings.Contains(out, "mended") {
			t.Errorf("%s: exit code %d, %s%s", name, code, out, errs)
		}
	}
}
