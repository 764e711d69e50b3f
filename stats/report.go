package stats

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/lwsbt/lwsbt/codec"
)

// ReportVersion is the version of the JSON form of a Report. It changes when the name
// or meaning of a field changes, not when a field is added.
const ReportVersion = 2

// Report holds the results for a dump. Sizes are in bytes; shares and ratios are
// fractions of 1.
type Report struct {
	Version     int         `json:"version"`
	Dump        Dump        `json:"dump"`
	Compression Compression `json:"compression"`
	Bits        []FieldBits `json:"bits"`
	Snip        Snip        `json:"snip"`
	Overhead    []Overhead  `json:"overhead"`
	CallPaths   CallPaths   `json:"call_paths"`

	word int // of the machine
}

// Log describes the log that the records came from. The caller fills it in.
type Log struct {
	Files      []string `json:"files"`
	Device     bool     `json:"device"` // the log has ~h# headers: device/ wrote it, not lws
	Bytes      int64    `json:"bytes"`  // decompressed
	Lines      int64    `json:"lines"`
	Dumps      int64    `json:"dumps"`           // ~h#begin headers
	Blobs      int64    `json:"blob_records"`    // ~m#
	Decoded    int64    `json:"decoded_records"` // ~b#
	Bare       int64    `json:"bare_records"`
	Lenient    int64    `json:"lenient"` // records in base64 that the strict reader rejects
	Cut        int64    `json:"cut"`     // truncated records; no other count includes them
	CutByLws   int64    `json:"cut_by_lws"`
	CutAt      []string `json:"cut_at"`
	Unreadable []Fault  `json:"unreadable"`
}

// Fault is a reason for which records could not be read.
type Fault struct {
	Reason string   `json:"reason"`
	Count  int64    `json:"count"`
	First  []string `json:"first"` // places
}

// Dump describes the dump and its log.
type Dump struct {
	Log
	Records       uint64       `json:"records"`
	DistinctPaths int          `json:"distinct_paths"`
	MeanDepth     float64      `json:"mean_depth"`
	Depths        []DepthCount `json:"depths"`
	Machine       string       `json:"machine"`
	MachineGiven  bool         `json:"machine_given"` // the user set the machine
	MachineSure   bool         `json:"machine_sure"`
	Evidence      []string     `json:"evidence"`
	Payload       uint64       `json:"payload"`          // bytes that the program requested
	PayloadOver   bool         `json:"payload_overflow"` // the sum is over 2^64-1, and Payload is 2^64-1
	Metadata      uint64       `json:"metadata"`         // bytes of metadata in memory, for the machine's word
}

// DepthCount is the number of stacks with a given number of frames.
type DepthCount struct {
	Depth int    `json:"depth"`
	Count uint64 `json:"count"`
}

// Compression is the size of the stacks in several forms.
type Compression struct {
	Forms  []Form `json:"forms"`
	Frames uint64 `json:"frames"`
	// Recorded is the number of blobs under FormRecorded that are in the dump. The others are
	// computed, for stacks recorded without a blob.
	Recorded uint64 `json:"recorded"`
	// Lossy reports whether upper bits of addresses are lost; all forms except raw and
	// FormRecorded are then computed from estimated addresses. Compared allocations were encoded
	// again as lws does; Differ is the number of these whose length then differs from the
	// recorded length. It shows how good the estimate is.
	Lossy    bool      `json:"lossy"`
	Differ   uint64    `json:"differ"`
	Compared uint64    `json:"compared"`
	Verdicts []Verdict `json:"verdicts"`
	// Sampled is the number of bytes of text that gzip and zstd compressed; their sizes
	// are extrapolated if it is less than TextBytes.
	Sampled   uint64 `json:"sampled"`
	TextBytes uint64 `json:"text_bytes"`
}

// Names of forms.
const (
	FormRaw32    = "raw, 32-bit words"
	FormRaw64    = "raw, 64-bit words"
	FormRecorded = "as recorded"
	FormLws      = "as lws encodes" // instead of FormRecorded if no blob was recorded
	FormBest     = "best search"
	FormExact    = "exact machine"
	FormDepot    = "stack depot"
	FormText     = "dump as text"
	FormGzip     = "dump by gzip"
	FormZstd     = "dump by zstd"
)

// Form is one way to store the stacks and sizes of all allocations.
type Form struct {
	Name      string  `json:"name"`
	Bytes     uint64  `json:"bytes"`
	OfRaw32   float64 `json:"of_raw32"`
	OfRaw64   float64 `json:"of_raw64"`
	PerFrame  float64 `json:"bits_per_frame"` // all bits divided by all frames
	Each      *Dist   `json:"each,omitempty"` // bytes per allocation, nil if allocations share bytes
	Estimated bool    `json:"estimated"`
}

// Verdict compares the compression of lws with raw stacks of a word size.
type Verdict struct {
	Word     int     `json:"word"`
	Fits     bool    `json:"fits"` // the addresses fit the word
	Raw      uint64  `json:"raw"`
	Lws      uint64  `json:"lws"`
	Loses    bool    `json:"loses"`
	BestToo  bool    `json:"best_loses"`
	LargerBy float64 `json:"larger_by"` // fraction of the raw size; negative if smaller
	Worse    uint64  `json:"worse"`     // allocations whose blob is larger than raw
}

// FieldBits is the share of one kind of field in all blobs.
type FieldBits struct {
	Field    string  `json:"field"`
	Bits     uint64  `json:"bits"`
	Share    float64 `json:"share"`
	PerStack float64 `json:"per_stack"`
}

// Overhead is the memory that the metadata of live allocations takes on a target.
// (BT-MEM-2)
type Overhead struct {
	Word    int     `json:"word"`
	Blob    uint64  `json:"blob"`
	Padding uint64  `json:"padding"`
	Node    uint64  `json:"node"`
	Total   uint64  `json:"total"`
	Each    Dist    `json:"each"`
	Share   float64 `json:"share"` // of the heap: total / (total + payload)
	// The same with the allocator wrapper of lws, which adds the metadata twice. (BT-MEM-3)
	WrapperTotal uint64  `json:"wrapper_total"`
	WrapperShare float64 `json:"wrapper_share"`
}

// Options are the inputs of a report other than the dump.
type Options struct {
	Log          Log
	Machine      codec.Machine
	Given        bool // Machine was set by the user
	Sure         bool
	Evidence     []string
	CapturedPre  int // SNIP_PRE when the dump was captured
	CapturedPost int

	// Name, if not nil, returns the function that contains the call before pc, or "" if it
	// is not known. Hidden, if not nil, reports whether the advice on SNIP_PRE and
	// SNIP_POST may leave out this function. If lossy is true, only the low 31 bits of
	// pc are known.
	Name   func(pc uint64, lossy bool) string
	Hidden func(pc uint64, lossy bool) bool
}

// Report returns the report on the records added so far. It does not change the
// collector; more records may be added.
func (c *Collector) Report(o Options) *Report {
	v := c.view(o.Machine)
	rep := &Report{Version: ReportVersion, word: o.Machine.Word()}
	lens, worse := v.lwsLens()
	rep.Compression = v.compression(lens, worse)
	rep.Bits = v.fieldBits()
	rep.Snip = v.snip(&o)
	for _, word := range words {
		rep.Overhead = append(rep.Overhead, overhead(lens, c.payload, word, o.Log.Device))
	}
	rep.CallPaths = v.callPaths(rep.Overhead, c.textSize(lens))
	rep.Dump = c.dump(&o)
	for _, h := range rep.Overhead {
		if h.Word == o.Machine.Word() {
			rep.Dump.Metadata = h.Total
		}
	}
	return rep
}

func (c *Collector) dump(o *Options) Dump {
	d := Dump{Log: o.Log, Records: c.records, DistinctPaths: c.paths.all.n, Payload: c.payload,
		MeanDepth: ratio(c.frames, c.records), Machine: o.Machine.String(), MachineGiven: o.Given,
		MachineSure: o.Sure || o.Given, PayloadOver: c.payloadOver, Depths: []DepthCount{}}
	for n, times := range c.depths {
		if times > 0 {
			d.Depths = append(d.Depths, DepthCount{n, times})
		}
	}
	// Not nil: empty lists are [] in JSON.
	d.Evidence = append([]string{}, o.Evidence...)
	d.Files = append([]string{}, o.Log.Files...)
	d.CutAt = append([]string{}, o.Log.CutAt...)
	d.Unreadable = append([]Fault{}, o.Log.Unreadable...)
	return d
}

// raw returns the lengths of all stacks without compression.
func (c *Collector) raw(word int) counts {
	var lens counts
	for depth, times := range c.depths {
		lens.add(rawBytes(depth, word), times)
	}
	return lens
}

func (v *view) compression(lws counts, worse [2]uint64) Compression {
	raw32, _ := v.raw(32).total()
	raw64, _ := v.raw(64).total()
	out := Compression{Frames: v.frames, Recorded: v.blobs, Lossy: v.lossy > 0, Differ: v.differ, Compared: v.compared,
		TextBytes: v.textBytes, Sampled: uint64(len(v.text))}
	form := func(name string, total uint64, each *Dist, estimated bool) {
		out.Forms = append(out.Forms, Form{Name: name, Bytes: total, OfRaw32: ratio(total, raw32),
			OfRaw64: ratio(total, raw64), PerFrame: 8 * ratio(total, v.frames), Each: each, Estimated: estimated})
	}
	each := func(name string, lens counts, estimated bool) {
		total, _ := lens.total()
		d := lens.dist()
		form(name, total, &d, estimated)
	}
	best := v.newLens(v.machine, codec.SearchBest)
	each(FormRaw32, v.raw(32), false)
	each(FormRaw64, v.raw(64), false)
	if v.blobs > 0 {
		each(FormRecorded, lws, false)
	} else {
		each(FormLws, lws, true)
	}
	each(FormBest, best, out.Lossy)
	each(FormExact, v.newLens(exact(v.machine), codec.SearchLws), out.Lossy)
	depot, fits32 := v.depot()
	form(FormDepot, depot, nil, false)
	if v.hasText {
		gz, zs := v.compressedText()
		form(FormText, v.textBytes, nil, false)
		form(FormGzip, gz, nil, out.Sampled < out.TextBytes)
		form(FormZstd, zs, nil, out.Sampled < out.TextBytes)
	}
	lwsTotal, _ := lws.total()
	bestTotal, _ := best.total()
	for i, raw := range []uint64{raw32, raw64} {
		d := Verdict{Word: words[i], Raw: raw, Worse: worse[i]}
		d.Lws, d.Fits = lwsTotal, d.Word == 64 || fits32
		d.Loses, d.BestToo = d.Lws > d.Raw, bestTotal > d.Raw
		d.LargerBy = ratio(d.Lws, d.Raw) - 1
		out.Verdicts = append(out.Verdicts, d)
	}
	return out
}

// depot returns the size of a table of distinct call paths: each path once with its
// depth in a word, and for each allocation an index of 4 bytes and the size in a word.
// fits32 reports whether all addresses fit 32 bits.
func (v *view) depot() (total uint64, fits32 bool) {
	w := uint64(v.machine.Word() / 8)
	total, fits32 = v.records*(4+w), true
	v.eachPath(func(p *path, pcs []uint64) {
		total += w * uint64(len(pcs)+1)
		fits32 = fits32 && p.lossy == 0 && fitting(pcs, codec.MachineExact32) == codec.MachineExact32
	})
	return total, fits32
}

// compressedText returns the size of the records' text compressed by gzip and by zstd,
// extrapolated if only a sample of the text was kept.
func (c *Collector) compressedText() (gz, zs uint64) {
	scale := func(n int) uint64 {
		return uint64(math.Round(float64(n) * ratio(c.textBytes, uint64(len(c.text)))))
	}
	var out bytes.Buffer
	compress(gzip.NewWriter(&out), c.text)
	gz = scale(out.Len())
	out.Reset()
	s, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("stats: zstd: " + err.Error())
	}
	compress(s, c.text)
	return gz, scale(out.Len())
}

// compress writes data to a compressor whose output is in memory and cannot fail.
func compress(w io.WriteCloser, data []byte) {
	if _, err := w.Write(data); err != nil {
		panic("stats: compressing: " + err.Error())
	}
	if err := w.Close(); err != nil {
		panic("stats: compressing: " + err.Error())
	}
}

// useNames are the rows of FieldBits, in the order of the fields of a blob.
var useNames = []struct {
	name string
	kind int
}{
	{"depth", int(codec.FieldDepth)},
	{"kinds", int(codec.FieldKindBit)},
	{"back references", int(codec.FieldBack)},
	{"signs", int(codec.FieldSign)},
	{"counts of frames", int(codec.FieldCount)},
	{"literal values", int(codec.FieldLiteral)},
	{"delta values", int(codec.FieldDelta)},
	{"count of the size", int(codec.FieldSizeCount)},
	{"size", int(codec.FieldSize)},
	{"spill bits", useSpill},
	{"user bits", int(codec.FieldUser)},
	{"padding", usePadding},
	{"length", int(codec.FieldLength)},
}

func (v *view) fieldBits() []FieldBits {
	u := v.uses()
	var total uint64
	for _, n := range u {
		total += n
	}
	var all []FieldBits
	for _, row := range useNames {
		n := u[row.kind]
		all = append(all, FieldBits{Field: row.name, Bits: n, Share: ratio(n, total), PerStack: ratio(n, v.records)})
	}
	return all
}

// overhead returns the memory that blobs with these lengths take. (BT-MEM-1, BT-MEM-2)
func overhead(blobs counts, payload uint64, word int, device bool) Overhead {
	ptr := word / 8
	align := ptr
	if device {
		align = deviceAlign(word)
	}
	o := Overhead{Word: word}
	var each counts
	for n, times := range blobs {
		padded := roundUp(n+3*ptr, align) - 3*ptr
		o.Blob += uint64(n) * times
		o.Padding += uint64(padded-n) * times
		o.Node += uint64(3*ptr) * times
		each.add(padded+3*ptr, times)
	}
	o.Total = o.Blob + o.Padding + o.Node
	o.Each = each.dist()
	o.Share = ratio(o.Total, satAdd(o.Total, payload))
	o.WrapperTotal = 2 * o.Total
	o.WrapperShare = ratio(o.WrapperTotal, satAdd(o.WrapperTotal, payload))
	return o
}

// deviceAlign returns the alignment of blocks of device/, in bytes: the LWSBT_ALIGN of most
// machines with this word size in bits.
func deviceAlign(word int) int { return 2 * word / 8 }

// roundUp returns the smallest multiple of align that is at least n.
func roundUp(n, align int) int { return (n + align - 1) / align * align }

// place returns an address as text. A lossy address is an ellipsis and the low 31 bits.
func place(id uint64, lossy bool) string {
	if lossy {
		return fmt.Sprintf("…%08x", id&low31)
	}
	return fmt.Sprintf("%#x", id)
}
