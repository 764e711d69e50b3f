package core

import (
	"bytes"
	"encoding/hex"
	"fmt"
)

// maxUntext limits the number of bytes of data in a file of records.
const maxUntext = 1 << 30

// hexFormat is a format of lines with bytes in hexadecimal, of which the first is their number and the last a checksum.
type hexFormat struct {
	name string
	mark byte   // at the start of a line
	skip int    // characters before the bytes
	more int    // bytes that are not counted
	sum  byte   // of all bytes
	end  string // what ends the file
	// record takes the bytes of a line. It returns why they are rejected, "" if they are not.
	record func(r *records, line, b []byte) (why string, err error)
}

var (
	intelHex = hexFormat{"an Intel HEX record", ':', 1, 5, 0, "end-of-file record", (*records).intel}
	sRecords = hexFormat{"an S-record", 'S', 2, 1, 0xff, "S7, S8 or S9 record", (*records).motorola}
)

// records collects the data of a file of lines; data at adjacent addresses is joined.
type records struct {
	m     *Image
	name  string
	addr  uint64 // of data
	data  []byte
	total int
	base  uint64 // of Intel HEX
	wrap  bool   // addresses wrap at 64 KB, as in segments
	ended bool
}

func (r *records) put(addr uint64, b []byte) error {
	if r.total += len(b); r.total > maxUntext {
		return fmt.Errorf("%s: more than %d bytes", r.name, maxUntext)
	}
	if addr != r.addr+uint64(len(r.data)) {
		r.flush()
		r.addr = addr
	}
	r.data = append(r.data, b...)
	return nil
}

func (r *records) flush() {
	r.m.add(Segment{Addr: r.addr, Data: r.data, Write: true})
	r.data = nil
}

// addRecords reads a file of lines. Rejected lines are noted.
func (m *Image) addRecords(s *source, f *hexFormat) error {
	r := records{m: m, name: s.name}
	var buf [256 + 5]byte
	for n, line := range numbered(s.data) {
		if len(line) == 0 || r.ended {
			continue
		}
		b, why := f.bytes(buf[:], line)
		if why == "" {
			var err error
			if why, err = f.record(&r, line, b); err != nil {
				return err
			}
		}
		if why != "" {
			m.notes.add("%s:%d: %s: line left out", r.name, n, why)
		}
	}
	r.flush()
	if r.total == 0 {
		return fmt.Errorf("%s: no line with data", r.name)
	}
	if !r.ended {
		m.notes.add("%s: cut: no %s", r.name, f.end)
	}
	return nil
}

// bytes returns the bytes of a line, or why it is not valid.
func (f *hexFormat) bytes(buf, line []byte) (b []byte, why string) {
	if line[0] != f.mark || len(line) < f.skip+2*f.more || len(line) > f.skip+2*len(buf) {
		return nil, "not " + f.name
	}
	k, err := hex.Decode(buf, line[f.skip:])
	if err != nil {
		return nil, err.Error()
	}
	b = buf[:k]
	if want := int(b[0]) + f.more; want != k {
		return nil, fmt.Sprintf("%d bytes, expected %d", k, want)
	}
	sum := f.sum
	for _, c := range b {
		sum -= c
	}
	if sum != 0 {
		return nil, fmt.Sprintf("checksum 0x%02x, expected 0x%02x", b[k-1], b[k-1]+sum)
	}
	return b, ""
}

// intel takes length, address (16 bits), type, data and checksum of Intel HEX.
func (r *records) intel(_, b []byte) (why string, err error) {
	at, data := uint64(b[1])<<8|uint64(b[2]), b[4:len(b)-1]
	switch b[3] {
	case 0:
		over := int(at) + len(data) - 1<<16
		if !r.wrap || over <= 0 {
			return "", r.put((r.base+at)&(1<<32-1), data)
		}
		if err := r.put(r.base+at, data[:len(data)-over]); err != nil {
			return "", err
		}
		return "", r.put(r.base, data[len(data)-over:])
	case 1:
		r.ended = true
	case 2, 4:
		if len(data) != 2 {
			return fmt.Sprintf("%d bytes of address, expected 2", len(data)), nil
		}
		shift := 16
		if r.wrap = b[3] == 2; r.wrap {
			shift = 4
		}
		r.base = (uint64(data[0])<<8 | uint64(data[1])) << shift
	case 3, 5: // start address of the program
	default:
		return fmt.Sprintf("record type %d", b[3]), nil
	}
	return "", nil
}

// motorola takes count, address, data and checksum of an S-record. Its type is in the line.
func (r *records) motorola(line, b []byte) (why string, err error) {
	switch line[1] {
	case '1', '2', '3':
		width := int(line[1]-'0') + 1 // of the address, in bytes
		if len(b) < 1+width+1 {
			return fmt.Sprintf("no address of %d bytes", width), nil
		}
		addr := uint64(0)
		for _, c := range b[1 : 1+width] {
			addr = addr<<8 | uint64(c)
		}
		return "", r.put(addr, b[1+width:len(b)-1])
	case '7', '8', '9':
		r.ended = true
	case '0', '5', '6': // header, counts of records
	default:
		return fmt.Sprintf("record type S%c", line[1]), nil
	}
	return "", nil
}

// numbered yields the lines of b with their numbers, without surrounding spaces.
func numbered(b []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		for n := 1; len(b) > 0; n++ {
			var line []byte
			line, b, _ = bytes.Cut(b, []byte{'\n'})
			if !yield(n, bytes.TrimSpace(line)) {
				return
			}
		}
	}
}
