package crash

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"fmt"
)

// A dump of CrashCatcher: "cC", version 3, 0; flags u32 (1: registers of floating point follow); r0-r12, sp, lr, pc, xPSR, msp, psp,
// xPSR of the handler; 33 words of floating point; then memory: start u32, end u32, bytes.
const (
	catcherHeader = 8 + 20*4
	catcherFloat  = 33 * 4
)

// catcherOverflow follows the memory if the stack of CrashCatcher overflowed.
var catcherOverflow = []byte{0xac, 0xce, 0x55, 0xed}

func readCatcher(b []byte, d *Dump) error {
	d.Format, d.Machine, d.Word = "CrashCatcher", elf.EM_ARM, 32
	if len(b) < catcherHeader {
		return fmt.Errorf("%d bytes, expected registers in the first %d", len(b), catcherHeader)
	}
	d.about("CrashCatcher dump version %d.%d", b[2], b[3])
	w := words(b[8:catcherHeader], 4)
	t := Thread{Crashed: true, PC: w[15], Status: w[16]}
	t.set(w, seq(0, 14)...)
	t.set(w[18:], armPSP)
	d.addThread(t)
	at := catcherHeader
	if le.Uint32(b[4:])&1 != 0 {
		at += catcherFloat
	}
	for at < len(b) {
		rest := b[at:]
		if bytes.HasPrefix(rest, catcherOverflow) {
			d.damaged("byte %d: the stack of CrashCatcher overflowed, over variables of the program", at)
			at += len(catcherOverflow)
			continue
		}
		if len(rest) < 8 {
			d.damaged("the dump ends early: %d bytes at byte %d, expected a range of addresses", len(rest), at)
			break
		}
		from, to := uint64(le.Uint32(rest)), uint64(le.Uint32(rest[4:]))
		if to < from {
			d.damaged("byte %d: memory from %#x to %#x, the rest is left out", at, from, to)
			break
		}
		have := min(to-from, uint64(len(rest)-8))
		d.add(from, rest[8:8+have])
		if have < to-from {
			d.damaged("the dump ends early: memory from %#x has %d bytes, expected %d", from, have, to-from)
		}
		at += 8 + int(have)
	}
	return nil
}

// catcherLine returns the bytes of a line that has nothing but hexadecimal digits.
func catcherLine(line []byte) ([]byte, bool) {
	line = bytes.TrimSpace(line)
	b := make([]byte, len(line)/2)
	_, err := hex.Decode(b, line)
	return b, err == nil && len(b) > 0
}

var catcherSignature = []byte{'c', 'C', 3, 0}

func isCatcherLog(b []byte) bool {
	if !bytes.Contains(b, []byte("63430300")) {
		return false
	}
	for _, line := range lines(b) {
		if data, ok := catcherLine(line); ok && bytes.Equal(data, catcherSignature) {
			return true
		}
	}
	return false
}

// readCatcherLog reads the last dump in a log: lines of digits from the signature on.
func readCatcherLog(log []byte, d *Dump) error {
	d.Format = "CrashCatcher"
	var out []byte
	on, dumps := false, 0
	for n, line := range lines(log) {
		b, ok := catcherLine(line)
		switch {
		case ok && bytes.Equal(b, catcherSignature):
			on, out, d.Damage = true, nil, nil
			if dumps++; dumps > 1 {
				d.About = nil
				d.about("the log has %d dumps: the last one is read", dumps)
			}
			out = append(out, b...)
		case !on:
		case ok:
			out = append(out, b...)
		case len(bytes.TrimSpace(line)) == 0 || bytes.Contains(line, []byte("End of dump")):
			on = len(out) < catcherHeader
		default:
			d.damaged("line %d: not hexadecimal: left out", n)
		}
	}
	return readCatcher(out, d)
}
