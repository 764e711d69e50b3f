package stats

import (
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// MaxSnip is how many more frames, at most, the matrix leaves out at either end.
const MaxSnip = 4

// MinFrames is how many frames, at least, the recommendation keeps of every stack.
const MinFrames = 4

// Snip is the effect of leaving out more frames. (BT-CAP-1)
type Snip struct {
	CapturedPre  int        `json:"captured_pre"`
	CapturedPost int        `json:"captured_post"`
	Cells        []SnipCell `json:"cells"` // by Pre, then Post
	// Full is how many stacks have all the frames that lws keeps: there, frames farther
	// out that were cut off would take the place of those left out, and the matrix says
	// a little too little.
	Full      uint64     `json:"full"`
	Recommend SnipAdvice `json:"recommend"`
}

// SnipCell is the dump with Pre more frames left out at the innermost end and Post
// at the outermost.
type SnipCell struct {
	Pre     int     `json:"pre"`
	Post    int     `json:"post"`
	SetPre  int     `json:"set_pre"`  // SNIP_PRE that means
	SetPost int     `json:"set_post"` // SNIP_POST that means
	Bytes   uint64  `json:"bytes"`
	Mean    float64 `json:"mean"`
	Ratio   float64 `json:"ratio"` // to raw stacks of as many frames, in the machine's word
	Saved   int64   `json:"saved"` // bytes over the dump
	Paths   int     `json:"paths"` // distinct call paths
	Merged  int     `json:"merged"`
}

// SnipAdvice is the recommended pair, and the frames that it leaves out.
type SnipAdvice struct {
	Pre    int         `json:"pre"` // further, as in SnipCell
	Post   int         `json:"post"`
	Saved  int64       `json:"saved"`
	Paths  int         `json:"paths"`
	Merged int         `json:"merged"`
	Frames []SnipFrame `json:"frames"` // innermost first; of several threads, each thread's
	Why    string      `json:"why"`
	CMake  []string    `json:"cmake"`
}

// SnipFrame is a frame that the advice leaves out.
type SnipFrame struct {
	End     string `json:"end"`      // "innermost" or "outermost"
	Level   int    `json:"level"`    // from that end, from 0
	Address string `json:"address"`  // "" if Why is that it is hidden and stacks differ
	Name    string `json:"function"` // "" if not known
	Why     string `json:"why"`
	Stacks  uint64 `json:"stacks"` // that have it
}

// snipped returns what lws would have kept of a stack with pre more frames left out
// inside and post more outside: these only where more than that many are there.
// (BT-CAP-1)
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

// snipRow returns what pre and each post make of the dump.
func (v *view) snipRow(pre int, o *Options) []SnipCell {
	var row [MaxSnip + 1]SnipCell
	var raw [MaxSnip + 1]uint64
	var seen [MaxSnip + 1]slotTable // paths that are distinct after the snip
	n := 0
	v.eachPath(func(p *path, pcs []uint64) {
		for post := range row {
			pcs := snipped(pcs, pre, post)
			if hash := hashOf(pcs); v.isNew(&seen[post], hash, pcs, pre, post) {
				seen[post].insert(hash, n)
			}
			bits := frameBits(pcs, v.machine, codec.SearchLws)
			v.paths.eachSize(p, func(s *sizeClass) {
				row[post].Bytes += uint64(blobBytes(bits, s)) * s.count
				raw[post] += uint64(rawBytes(len(pcs), v.machine.Word())) * s.count
			})
		}
		n++
	})
	for post := range row {
		cell := &row[post]
		cell.Pre, cell.Post, cell.SetPre, cell.SetPost = pre, post, o.CapturedPre+pre, o.CapturedPost+post
		cell.Paths = seen[post].used
		cell.Mean, cell.Ratio = ratio(cell.Bytes, v.records), ratio(cell.Bytes, raw[post])
	}
	return row[:]
}

// isNew reports whether none of the paths seen has the addresses pcs after the snip.
func (v *view) isNew(seen *slotTable, hash uint32, pcs []uint64, pre, post int) bool {
	for at, ok := seen.first(hash); ok; at, ok = seen.next(hash, at) {
		other := v.pcs(&v.other, v.paths.path(seen.number(at)))
		if slices.Equal(snipped(other, pre, post), pcs) {
			return false
		}
	}
	return true
}
