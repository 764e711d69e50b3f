package crash

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"

	"github.com/lwsbt/lwsbt/internal/crc16"
)

const (
	zephyrMark  = "#CD:"
	zephyrBegin = "#CD:BEGIN#"
	nuttxBegin  = "Start coredump:"
	nuttxEnd    = "Finish coredump"
	espBegin    = "= CORE DUMP START ="
	espEnd      = "= CORE DUMP END ="
)

// lines yields the lines of b with their numbers.
func lines(b []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		for n := 1; len(b) > 0; n++ {
			var line []byte
			line, b, _ = bytes.Cut(b, []byte{'\n'})
			if !yield(n, line) {
				return
			}
		}
	}
}

// between returns the lines between the last begin mark of a log and the end mark after it, with the number of the first
// line and the line of the end mark. It notes a missing end mark.
func (d *Dump) between(log []byte, begin, end string) (text []byte, first int, last []byte) {
	at := bytes.LastIndex(log, []byte(begin))
	if n := bytes.Count(log, []byte(begin)); n > 1 {
		d.about("the log has %d dumps: the last one is read", n)
	}
	first = bytes.Count(log[:max(at, 0)], []byte{'\n'}) + 2
	_, text, _ = bytes.Cut(log[max(at, 0):], []byte{'\n'})
	stop := bytes.Index(text, []byte(end))
	if stop < 0 {
		d.damaged("no line %q: the dump in the log is cut after line %d", end, first-1+bytes.Count(text, []byte{'\n'}))
		return text, first, nil
	}
	last, _, _ = bytes.Cut(text[stop:], []byte{'\n'})
	return text[:bytes.LastIndexByte(text[:stop], '\n')+1], first, last
}

// zephyrLog collects the bytes of "#CD:" lines. Those of device/ have 8 digits before the mark: the number of the line, and a
// checksum of number and data. Each but the last has lineBytes bytes.
type zephyrLog struct {
	d        *Dump
	data     []byte
	holes    [][2]int
	numbered bool
	ended    bool
}

const lineBytes = 32

// maxLost limits the bytes that lost lines may stand for: line numbers have 16 bits.
const maxLost = lineBytes << 16

func readZephyrLog(log []byte, d *Dump) error {
	d.Format = "Zephyr"
	z := zephyrLog{d: d}
	dumps := 0
	for n, line := range lines(log) {
		prefix, rest, ok := bytes.Cut(line, []byte(zephyrMark))
		switch {
		case !ok:
		case bytes.HasPrefix(rest, []byte("BEGIN#")):
			if dumps++; dumps > 1 {
				if !z.ended {
					d.about("line %d: another dump begins before the end of the one before it", n)
				}
				d.Damage = nil
			}
			z = zephyrLog{d: d}
		case bytes.HasPrefix(rest, []byte("END#")):
			z.ended = true
		case bytes.HasPrefix(rest, []byte("ERROR CANNOT DUMP#")):
			d.damaged("line %d: the device reports that it could not write all", n)
		case dumps > 0 && !z.ended:
			z.line(n, prefix, rest)
		}
	}
	if dumps > 1 {
		d.about("the log has %d dumps: the last one is read", dumps)
	}
	if !z.ended {
		d.damaged("no line #CD:END#: the dump in the log is cut after %d bytes", len(z.data))
	}
	if lost := z.lost(); lost > 0 {
		d.damaged("%d bytes of the dump, in %d places, were in lines that are lost or damaged", lost, len(z.holes))
	}
	return (&zephyr{d: d, all: z.data, holes: z.holes}).read()
}

func (z *zephyrLog) lost() (n int) {
	for _, h := range z.holes {
		n += h[1] - h[0]
	}
	return n
}

func (z *zephyrLog) line(n int, prefix, rest []byte) {
	k := 0
	for k < len(rest) && isHex(rest[k]) {
		k++
	}
	if k%2 == 1 { // Zephyr's log has cut it
		z.d.damaged("line %d: %d hexadecimal digits, expected an even number: it and the lines behind it are left out", n, k)
		z.ended = true
		return
	}
	b := make([]byte, k/2)
	hex.Decode(b, rest[:k])
	number, state := lineNumber(prefix, b)
	at := number * lineBytes
	switch {
	case state == damagedNumber, state == valid && at < len(z.data):
		z.d.damaged("line %d: its checksum or number is wrong: left out", n)
		return
	case state == valid:
		z.numbered = true
		if at > len(z.data) && at-len(z.data) <= maxLost {
			z.holes = append(z.holes, [2]int{len(z.data), at})
			z.data = append(z.data, make([]byte, at-len(z.data))...)
		}
	case z.numbered:
		z.d.damaged("line %d: no number before the mark: left out", n)
		return
	}
	z.data = append(z.data, b...)
}

// What lineNumber found.
const (
	noNumber = iota
	damagedNumber
	valid
)

// lineNumber reads the number of a line and its checksum, CRC-16 (CCITT, from 0xffff) over number and data, each in 4
// digits before the mark.
func lineNumber(prefix, data []byte) (number, state int) {
	var b [4]byte
	if len(prefix) < 8 {
		return 0, noNumber
	}
	if _, err := hex.Decode(b[:], prefix[len(prefix)-8:]); err != nil {
		return 0, noNumber
	}
	if crc16.Update(crc16.Update(crc16.Init, b[:2]), data) != uint16(b[2])<<8|uint16(b[3]) {
		return 0, damagedNumber
	}
	return int(b[0])<<8 | int(b[1]), valid
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// readNuttXLog reads the dump in a log. The data of a line is what follows its last space.
func readNuttXLog(log []byte, d *Dump) error {
	d.Format = "NuttX"
	text, first, last := d.between(log, nuttxBegin, nuttxEnd)
	var out []byte
	for n, line := range lines(text) {
		line = bytes.TrimSpace(line)
		line = line[bytes.LastIndexByte(line, ' ')+1:]
		b := make([]byte, max(len(line)/2, base64.StdEncoding.DecodedLen(len(line))))
		var k int
		var err error
		if bytes.Contains(last, []byte("base64")) {
			k, err = base64.StdEncoding.Decode(b, line)
		} else {
			k, err = hex.Decode(b, line)
		}
		if err != nil {
			d.damaged("line %d: %v", first+n-1, err)
		}
		out = append(out, b[:k]...)
	}
	return readNuttX(out, d)
}

// readESPLog reads base64 lines of ESP-IDF: each line has its own padding. idf.py stores them without marks.
func readESPLog(log []byte, d *Dump) error {
	d.Format = "ESP-IDF"
	text, first := log, 1
	if bytes.Contains(log, []byte(espBegin)) {
		text, first, _ = d.between(log, espBegin, espEnd)
	}
	var out []byte
	for n, line := range lines(text) {
		b, err := decode64(line)
		if err != nil {
			d.damaged("line %d: %v", first+n-1, err)
			continue
		}
		out = append(out, b...)
	}
	return readESP(out, d)
}

func decode64(line []byte) ([]byte, error) {
	line = bytes.TrimSpace(line)
	b := make([]byte, base64.StdEncoding.DecodedLen(len(line)))
	n, err := base64.StdEncoding.Decode(b, line)
	if err != nil {
		err = errors.New("not base64: left out")
	}
	return b[:n], err
}

// isESPBase64 reports whether a file has lines of base64 without marks, which begin a dump.
func isESPBase64(b []byte) bool {
	line, rest, _ := bytes.Cut(b[:min(len(b), 4096)], []byte{'\n'})
	head, err := decode64(line)
	for err == nil && len(head) < espMinimum && len(rest) > 0 {
		var more []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		more, err = decode64(line)
		head = append(head, more...)
	}
	_, known := espLayoutOf(head)
	return err == nil && known
}
