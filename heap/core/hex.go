package core

import (
	"bytes"
	"encoding/hex"
	"fmt"
)

// maxUntext limits the number of bytes of data in a file of records.
const maxUntext = 1 << 30

// records collects the data of a file of lines; data at adjacent addresses is joined.
type records struct {
	m     *Image
	name  string
	addr  uint64 // of data
	data  []byte
	total int
	bad   int // number of rejected lines
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

// reject adds a note about a rejected line.
func (r *records) reject(line int, format string, args ...any) {
	r.bad++
	r.m.notes.add("%s:%d: %s: line left out", r.name, line, fmt.Sprintf(format, args...))
}

func (r *records) end(ended bool, mark string) error {
	r.flush()
	if r.total == 0 {
		return fmt.Errorf("%s: no line with data", r.name)
	}
	if !ended {
		r.m.notes.add("%s: cut: no %s", r.name, mark)
	}
	return nil
}

// hexFile is the state of reading an Intel HEX file.
type hexFile struct {
	records
	base  uint64
	wrap  bool // addresses wrap at 64 KB, as in segments
	ended bool
}

// addHex reads Intel HEX. A record is `:`, then length, address (16 bits), type, data
// and a checksum, in hexadecimal.
func (m *Image) addHex(s *source) error {
	r := hexFile{records: records{m: m, name: s.name}}
	var buf [256 + 5]byte
	for n, line := range numbered(s.data) {
		if len(line) == 0 || r.ended {
			continue
		}
		b, why := hexRecord(buf[:], line)
		if why != "" {
			r.reject(n, "%s", why)
			continue
		}
		if err := r.record(n, b); err != nil {
			return err
		}
	}
	return r.end(r.ended, "end-of-file record")
}

// hexRecord returns the bytes of a record, or the reason why the record is not valid.
func hexRecord(buf []byte, line []byte) (b []byte, why string) {
	if line[0] != ':' || len(line) < 11 || len(line) > 1+2*len(buf) {
		return nil, "not an Intel HEX record"
	}
	k, err := hex.Decode(buf, line[1:])
	if err != nil {
		return nil, err.Error()
	}
	b = buf[:k]
	if want := int(b[0]) + 5; want != k {
		return nil, fmt.Sprintf("%d bytes, expected %d", k, want)
	}
	sum := byte(0)
	for _, c := range b {
		sum += c
	}
	if sum != 0 {
		return nil, fmt.Sprintf("checksum 0x%02x, expected 0x%02x", b[k-1], b[k-1]-sum)
	}
	return b, ""
}

// record processes one record.
func (r *hexFile) record(line int, b []byte) error {
	at, data := uint64(b[1])<<8|uint64(b[2]), b[4:len(b)-1]
	switch b[3] {
	case 0:
		over := int(at) + len(data) - 1<<16
		if !r.wrap || over <= 0 {
			return r.put((r.base+at)&(1<<32-1), data)
		}
		if err := r.put(r.base+at, data[:len(data)-over]); err != nil {
			return err
		}
		return r.put(r.base, data[len(data)-over:])
	case 1:
		r.ended = true
	case 2, 4:
		if len(data) != 2 {
			r.reject(line, "%d bytes of address, expected 2", len(data))
			return nil
		}
		shift := 16
		if r.wrap = b[3] == 2; r.wrap {
			shift = 4
		}
		r.base = (uint64(data[0])<<8 | uint64(data[1])) << shift
	case 3, 5: // start address of the program
	default:
		r.reject(line, "record type %d", b[3])
	}
	return nil
}

// addSRec reads Motorola S-records. A record is `S`, a type, then count, address, data
// and a checksum in hexadecimal.
func (m *Image) addSRec(s *source) error {
	r := records{m: m, name: s.name}
	ended := false
	var buf [256]byte
	for n, line := range numbered(s.data) {
		if len(line) == 0 || ended {
			continue
		}
		if line[0] != 'S' || len(line) < 4 || len(line) > 2+2*len(buf) {
			r.reject(n, "not an S-record")
			continue
		}
		k, err := hex.Decode(buf[:], line[2:])
		if err != nil {
			r.reject(n, "%v", err)
			continue
		}
		b := buf[:k]
		if int(b[0])+1 != k {
			r.reject(n, "%d bytes, expected %d", k, int(b[0])+1)
			continue
		}
		sum := byte(0)
		for _, c := range b {
			sum += c
		}
		if sum != 0xff {
			r.reject(n, "checksum 0x%02x, expected 0x%02x", b[k-1], b[k-1]+^sum)
			continue
		}
		width := 0 // of the address, in bytes
		switch line[1] {
		case '1', '2', '3':
			width = int(line[1]-'0') + 1
		case '7', '8', '9':
			ended = true
			continue
		case '0', '5', '6': // header, counts of records
			continue
		default:
			r.reject(n, "record type S%c", line[1])
			continue
		}
		if k < 1+width+1 {
			r.reject(n, "no address of %d bytes", width)
			continue
		}
		addr := uint64(0)
		for _, c := range b[1 : 1+width] {
			addr = addr<<8 | uint64(c)
		}
		if err := r.put(addr, b[1+width:k-1]); err != nil {
			return err
		}
	}
	return r.end(ended, "S7, S8 or S9 record")
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
