package stats

import (
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// MaxSnip is the largest number of additional frames that the matrix leaves out at
// either end.
const MaxSnip = 4

// MinFrames is the least number of frames of every stack that the recommendation keeps.
const MinFrames = 4

// Snip is the effect of leaving out additional frames. (BT-CAP-1)
type Snip struct {
	CapturedPre  int        `json:"captured_pre"`
	CapturedPost int        `json:"captured_post"`
	Cells        []SnipCell `json:"cells"` // by Pre, then Post
	// Full is the number of stacks with the most frames that lws keeps. If frames of such a
	// stack are left out, frames farther out, which were cut off, take their place. So the
	// sizes in the matrix are slightly too small.
	Full      uint64     `json:"full"`
	Recommend SnipAdvice `json:"recommend"`
}

// SnipCell describes the dump with Pre additional frames left out at the innermost end
// and Post at the outermost.
type SnipCell struct {
	Pre     int     `json:"pre"`
	Post    int     `json:"post"`
	SetPre  int     `json:"set_pre"`  // the corresponding SNIP_PRE
	SetPost int     `json:"set_post"` // the corresponding SNIP_POST
	Bytes   uint64  `json:"bytes"`
	Mean    float64 `json:"mean"`
	Ratio   float64 `json:"ratio"` // to raw stacks with the same number of frames, in the machine's word
	Saved   int64   `json:"saved"` // bytes, over the whole dump
	Paths   int     `json:"paths"` // distinct call paths
	Merged  int     `json:"merged"`
}

// SnipAdvice is the recommended pair of settings, and the frames that they leave out.
type SnipAdvice struct {
	Pre    int         `json:"pre"` // additional frames, as in SnipCell
	Post   int         `json:"post"`
	Saved  int64       `json:"saved"`
	Paths  int         `json:"paths"`
	Merged int         `json:"merged"`
	Frames []SnipFrame `json:"frames"` // innermost first; one per thread if threads differ
	Why    string      `json:"why"`
	CMake  []string    `json:"cmake"`  // the options of lws; empty if Log.Device
	Fields []string    `json:"fields"` // the fields of struct lwsbt_heap of device/; empty if not Log.Device
}

// SnipFrame is a frame that the advice leaves out.
type SnipFrame struct {
	End     string `json:"end"`   // "innermost" or "outermost"
	Level   int    `json:"level"` // distance from that end, from 0
	Address string `json:"address"`
	Why     string `json:"why"`
	Stacks  uint64 `json:"stacks"` // number of stacks with this frame
}

// snipped returns the part of a stack that lws would keep if it left out pre more innermost
// frames and post more outermost frames. Outermost frames are left out only if more than
// post frames remain. (BT-CAP-1)
func snipped(pcs []uint64, pre, post int) []uint64 {
	pcs = pcs[min(pre, len(pcs)):]
	if len(pcs) > post {
		pcs = pcs[:len(pcs)-post]
	}
	return pcs
}

func (v *view) snip(o *Options) Snip {
	out := Snip{CapturedPre: o.CapturedPre, CapturedPost: o.CapturedPost}
	for depth, times := range v.depths {
		if depth >= codec.MaxDepth-o.CapturedPost {
			out.Full += times
		}
	}
	for pre := range MaxSnip + 1 {
		out.Cells = append(out.Cells, v.snipRow(pre, o)...)
	}
	base := out.Cells[0]
	for i := range out.Cells {
		cell := &out.Cells[i]
		cell.Saved = int64(base.Bytes) - int64(cell.Bytes)
		cell.Merged = base.Paths - cell.Paths
	}
	out.Recommend = v.advise(out.Cells, out.Full, o)
	return out
}

// snipRow returns the cells for pre and each post.
func (v *view) snipRow(pre int, o *Options) []SnipCell {
	var row [MaxSnip + 1]SnipCell
	var raw [MaxSnip + 1]uint64
	var hashes [MaxSnip + 1][]uint64 // of all paths after the snip
	v.eachPath(func(p *path, pcs []uint64) {
		for post := range row {
			pcs := snipped(pcs, pre, post)
			hashes[post] = append(hashes[post], hashOf(pcs))
			bits := frameBits(pcs, v.machine, codec.SearchLws)
			for s := range v.paths.sizes(p) {
				row[post].Bytes += uint64(blobBytes(bits, s.bits)) * s.count
				raw[post] += uint64(rawBytes(len(pcs), v.machine.Word())) * s.count
			}
		}
	})
	for post := range row {
		cell := &row[post]
		cell.Pre, cell.Post, cell.SetPre, cell.SetPost = pre, post, o.CapturedPre+pre, o.CapturedPost+post
		slices.Sort(hashes[post])
		cell.Paths = len(slices.Compact(hashes[post]))
		cell.Mean, cell.Ratio = ratio(cell.Bytes, v.records), ratio(cell.Bytes, raw[post])
	}
	return row[:]
}
