package stats

import (
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
)

// ReportVersion is the version of the JSON form of a Report. It changes when the name
// or meaning of a field changes, not when a field is added.
const ReportVersion = 3

// Report holds the results for a dump. Sizes are in bytes; shares and ratios are
// fractions of 1.
type Report struct {
	Version     int         `json:"version"`
	Dump        Dump        `json:"dump"`
	Compression Compression `json:"compression"`
	Overhead    []Overhead  `json:"overhead"`
	Snip        Snip        `json:"snip"`
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
	Lenient    int64    `json:"lenient"`         // records in base64 that the strict reader rejects
	Cut        int64    `json:"cut"`             // truncated records; no other count includes them
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
}

// Names of forms.
const (
	FormRaw32    = "raw, 32-bit words"
	FormRaw64    = "raw, 64-bit words"
	FormRecorded = "as recorded"
	FormLws      = "as lws encodes" // instead of FormRecorded if no blob was recorded
	FormBest     = "best search"
	FormExact    = "exact machine"
)

// Form is one way to store the stacks and sizes of all allocations.
type Form struct {
	Name      string  `json:"name"`
	Bytes     uint64  `json:"bytes"`
	OfRaw32   float64 `json:"of_raw32"`
	OfRaw64   float64 `json:"of_raw64"`
	PerFrame  float64 `json:"bits_per_frame"` // all bits divided by all frames
	Mean      float64 `json:"mean"`           // bytes per allocation
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

// Overhead is the memory that the metadata of live allocations takes on a target: blobs, padding and
// list nodes. (BT-MEM-2)
type Overhead struct {
	Word  int     `json:"word"`
	Total uint64  `json:"total"`
	Mean  float64 `json:"mean"`  // per allocation
	Share float64 `json:"share"` // of the heap: total / (total + payload)
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
}

// Report returns the report on the records added so far. It does not change the
// collector; more records may be added.
func (c *Collector) Report(o Options) *Report {
	v := c.view(o.Machine)
	rep := &Report{Version: ReportVersion}
	lens, worse := v.lwsLens()
	rep.Compression = v.compression(lens, worse)
	rep.Snip = v.snip(&o)
	for _, word := range words {
		rep.Overhead = append(rep.Overhead, overhead(lens, c.payload, word, o.Log.Device))
	}
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
	out := Compression{Frames: v.frames, Recorded: v.blobs, Lossy: v.lossy > 0, Differ: v.differ, Compared: v.compared}
	form := func(name string, lens counts, estimated bool) {
		total, _ := lens.total()
		out.Forms = append(out.Forms, Form{Name: name, Bytes: total, OfRaw32: ratio(total, raw32),
			OfRaw64: ratio(total, raw64), PerFrame: 8 * ratio(total, v.frames), Mean: ratio(total, v.records), Estimated: estimated})
	}
	best := v.newLens(v.machine, codec.SearchBest)
	form(FormRaw32, v.raw(32), false)
	form(FormRaw64, v.raw(64), false)
	if v.blobs > 0 {
		form(FormRecorded, lws, false)
	} else {
		form(FormLws, lws, true)
	}
	form(FormBest, best, out.Lossy)
	form(FormExact, v.newLens(exact(v.machine), codec.SearchLws), out.Lossy)
	fits32 := true
	v.eachPath(func(p *path, pcs []uint64) {
		fits32 = fits32 && p.lossy == 0 && fitting(pcs, codec.MachineExact32) == codec.MachineExact32
	})
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

// overhead returns the memory that blobs with these lengths take. (BT-MEM-1, BT-MEM-2)
func overhead(blobs counts, payload uint64, word int, device bool) Overhead {
	ptr := word / 8
	align := ptr
	if device {
		align = deviceAlign(word)
	}
	o := Overhead{Word: word}
	var n uint64
	for size, times := range blobs {
		o.Total += uint64(roundUp(size+3*ptr, align)) * times
		n += times
	}
	o.Mean = ratio(o.Total, n)
	o.Share = ratio(o.Total, satAdd(o.Total, payload))
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
