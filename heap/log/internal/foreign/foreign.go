// Package foreign reads the heap traces that other systems print to a log. It adds a
// record of SPEC.md to the end of each line that shows an allocation, and a header where a
// trace begins and ends. All other text stays as it is, so that lines keep their numbers:
//
//	12 bytes (@ 0x3fcaa114, Internal) allocated CPU 0 ccount 0x04371de8 caller 0x40376183:0x403761b8 ~m#…
//
// Each format is one file. None of them expects whole lines: a serial log loses characters,
// and loggers put times in front of lines.
package foreign

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/lwsbt/lwsbt/codec"
)

// format is a kind of trace.
type format struct {
	name string
	// signs: the first line of a trace contains one of these.
	signs []string
	new   func(*trace) lineReader
}

// lineReader reads the lines of one format.
type lineReader interface {
	// line takes a line without its end. Calls of the trace's methods add to the line.
	line(text []byte)
	// end is called at the end of the log.
	end()
}

var formats = []format{
	{"esp-idf", espSigns, newESP},
	{"nuttx", nuttxSigns, newNuttX},
	{"zephyr", zephyrSigns, newZephyr},
	{"freertos", freertosSigns, newFreeRTOS},
}

// Names returns the names of the formats.
func Names() []string {
	names := make([]string, len(formats))
	for i := range formats {
		names[i] = formats[i].name
	}
	return names
}

// maxLine is a length in bytes: longer lines belong to no trace.
const maxLine = 4 << 10

// Reader adds records to a log. Text is passed on as it comes, except behind a record of which the next
// line decides whether it counts.
type Reader struct {
	src    io.Reader
	buf    []byte // of src
	line   []byte // the line so far
	long   bool   // the line is too long
	plain  bool   // the log has no trace
	format *format
	lines  lineReader
	trace  trace // its out is not read yet
	err    error
}

// NewReader returns a Reader of the format with a name. With "" it is the format of which
// the log has a sign first; a log that first has records of SPEC.md is left as it is.
func NewReader(src io.Reader, name string) (*Reader, error) {
	r := &Reader{src: src}
	if name == "" {
		return r, nil
	}
	for i := range formats {
		if formats[i].name == name {
			r.use(&formats[i])
			return r, nil
		}
	}
	return nil, fmt.Errorf("format %q, expected one of %q", name, Names())
}

// Format returns the name of the format, "" if none was recognized.
func (r *Reader) Format() string {
	if r.format == nil {
		return ""
	}
	return r.format.name
}

// Skipped returns the number of lines within traces that look like an allocation but could
// not be read.
func (r *Reader) Skipped() int64 { return r.trace.skipped }

func (r *Reader) use(f *format) {
	r.format = f
	r.lines = f.new(&r.trace)
}

// Read reads the log with the records.
func (r *Reader) Read(p []byte) (int, error) {
	if r.plain && len(r.trace.out) == 0 {
		return r.src.Read(p)
	}
	for len(r.trace.ready()) == 0 && r.err == nil {
		if r.buf == nil {
			r.buf = make([]byte, 64<<10)
		}
		n, err := r.src.Read(r.buf[:min(len(r.buf), max(len(p), 1))])
		r.add(r.buf[:n])
		switch r.err = err; err {
		case nil:
		case io.EOF:
			r.finish()
		default:
			r.trace.release()
		}
	}
	n := copy(p, r.trace.ready())
	if r.trace.taken(n); len(r.trace.out) > 0 {
		return n, nil
	}
	return n, r.err
}

// add passes data on, and each line in it to the format.
func (r *Reader) add(data []byte) {
	out := &r.trace.out
	for len(data) > 0 {
		if r.plain {
			*out = append(*out, data...)
			return
		}
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			r.keep(data)
			*out = append(*out, data...)
			return
		}
		r.keep(data[:i])
		end := len(bytes.TrimRight(data[:i], "\r"))
		*out = append(*out, data[:end]...)
		r.endLine()
		*out = append(*out, data[end:i+1]...)
		data = data[i+1:]
	}
}

// keep appends text to the current line.
func (r *Reader) keep(text []byte) {
	if r.long = r.long || len(r.line)+len(text) > maxLine; !r.long {
		r.line = append(r.line, text...)
	}
}

// endLine passes the current line to the format, and appends the text that the format adds.
func (r *Reader) endLine() {
	text := bytes.TrimRight(r.line, "\r")
	long := r.long
	r.line, r.long = r.line[:0], false
	if long {
		return
	}
	if r.lines == nil {
		r.recognize(text)
	}
	if r.lines == nil {
		return
	}
	r.lines.line(text)
}

// recognize looks for a sign of a format in a line.
func (r *Reader) recognize(text []byte) {
	for i := range formats {
		for _, sign := range formats[i].signs {
			if bytes.Contains(text, []byte(sign)) {
				r.use(&formats[i])
				return
			}
		}
	}
	if i := bytes.IndexByte(text, '~'); i >= 0 && i+2 < len(text) && text[i+2] == '#' && bytes.IndexByte([]byte("mbehpv"), text[i+1]) >= 0 {
		r.plain = true
	}
}

// finish ends the log.
func (r *Reader) finish() {
	if r.lines == nil {
		return
	}
	r.endLine() // the last line may have no end
	r.lines.end()
}

// trace writes the records of dumps.
type trace struct {
	out     []byte
	held    []byte // the text of a record that may not count, nil if there is none
	at      int    // the position of held in out
	dump    uint64 // number of the next dump
	open    bool
	skipped int64
	blob    []byte
}

// boot begins a boot.
func (t *trace) boot() {
	t.dump, t.open = 0, false
	t.header(&codec.Header{Verb: codec.VerbBoot})
}

// begin opens a dump.
func (t *trace) begin() {
	h := codec.Header{Verb: codec.VerbBegin, Number: uint32(t.dump), HasNumber: true}
	h.Keys = append(h.Keys, codec.HeaderKey{Key: "u", Value: "1"})
	t.header(&h)
	t.open = true
}

// close closes the open dump. n and b are the blocks and bytes that the trace says it has,
// negative if it does not say.
func (t *trace) close(n, b int64) {
	if !t.open {
		return
	}
	h := codec.Header{Verb: codec.VerbEnd, Number: uint32(t.dump), HasNumber: true}
	for _, k := range []struct {
		name  string
		value int64
	}{{"n", n}, {"b", b}} {
		if k.value >= 0 {
			h.Keys = append(h.Keys, codec.HeaderKey{Key: k.name, Value: strconv.FormatInt(k.value, 10)})
		}
	}
	t.header(&h)
	t.dump, t.open = t.dump+1, false
}

// heap is what an allocator says of a heap, in bytes. A negative value is not known.
type heap struct {
	name                       string // "" if the system names none
	size, free, largest, least int64
}

// heap adds the values of an allocator.
func (t *trace) heap(v heap) {
	h := codec.Header{Verb: codec.VerbHeap}
	if v.name != "" {
		h.Keys = append(h.Keys, codec.HeaderKey{Key: "name", Value: v.name})
	}
	for _, k := range []struct {
		name  string
		value int64
	}{{"size", v.size}, {"free", v.free}, {"largest", v.largest}, {"min", v.least}} {
		if k.value >= 0 {
			h.Keys = append(h.Keys, codec.HeaderKey{Key: k.name, Value: strconv.FormatInt(k.value, 10)})
		}
	}
	t.header(&h)
}

func (t *trace) header(h *codec.Header) {
	if out, err := codec.AppendHeader(append(t.out, ' '), h); err == nil {
		t.out = out
	}
}

// maxFrames is the most frames that a record with user fields takes. (BT-EVT-2)
const maxFrames = codec.MaxDepth - 1

// block is an allocation of a trace.
type block struct {
	size int64
	pcs  []uint64 // innermost first
	user codec.User
}

// record writes a block as a ~m# record, with its 31 innermost frames. Outside of a dump it opens one.
func (t *trace) record(b *block) {
	if !t.open {
		t.begin()
	}
	if b.size < 0 {
		t.skipped++
		return
	}
	s := codec.Stack{Size: uint64(b.size), PCs: b.pcs[:min(len(b.pcs), maxFrames)]}
	blob, err := codec.AppendBlobUser(t.blob[:0], &s, &b.user, codec.MachineExact64, codec.SearchLws)
	if err != nil {
		t.skipped++
		return
	}
	t.blob = blob
	t.out = codec.AppendLine(append(t.out, ' '), blob)
}

// hold keeps the record of a block until release or drop is called. A record that is held already
// counts.
func (t *trace) hold(b *block) {
	t.release()
	if !t.open {
		t.begin()
	}
	t.at = len(t.out)
	t.record(b)
	t.held = slices.Clone(t.out[t.at:])
	t.out = t.out[:t.at]
}

// release writes the held record, if there is one, to the end of its line.
func (t *trace) release() {
	if t.held != nil {
		t.out = slices.Insert(t.out, t.at, t.held...)
		t.held = nil
	}
}

// drop forgets the held record.
func (t *trace) drop() { t.held = nil }

// maxHeld is the number of bytes behind a held record from which on the record counts.
const maxHeld = 16 << 10

// ready returns the text that can be passed on: up to a held record.
func (t *trace) ready() []byte {
	if t.held == nil {
		return t.out
	}
	if len(t.out)-t.at > maxHeld {
		t.release()
		return t.out
	}
	return t.out[:t.at]
}

// taken removes the first n bytes of ready.
func (t *trace) taken(n int) { t.out, t.at = t.out[n:], t.at-n }

// hexes reads the hexadecimal numbers of a text, each with 0x, until other text than the
// separators comes; trailing zeros, which stand for frames that were not captured, are left
// out.
func hexes(dst []uint64, text []byte, separators string) []uint64 {
	for {
		text = bytes.TrimLeft(text, separators)
		if !bytes.HasPrefix(text, []byte("0x")) {
			break
		}
		n := 2
		for n < len(text) && isHex(text[n]) {
			n++
		}
		v, err := strconv.ParseUint(string(text[2:n]), 16, 64)
		if err != nil {
			break
		}
		dst = append(dst, v)
		text = text[n:]
	}
	if i := slices.Index(dst, 0); i >= 0 {
		dst = dst[:i]
	}
	return dst
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// number converts decimal digits; -1 if they are not a number below 2^63.
func number(text []byte) int64 {
	v, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return -1
	}
	return v
}

// address converts a hexadecimal number with 0x; 0 if it is not below 2^64.
func address(text []byte) uint64 {
	v, _ := strconv.ParseUint(string(text[2:]), 16, 64)
	return v
}
