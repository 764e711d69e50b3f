package stats

import (
	"fmt"
	"slices"

	"github.com/lwsbt/lwsbt/codec"
)

// MaxSnip is the most further frames that the matrix tries to leave out at either
// end.
const MaxSnip = 4

// Snip is what leaving out more frames would cost and save. (BT-CAP-1)
type Snip struct {
	CapturedPre  int        `json:"captured_pre"`
	CapturedPost int        `json:"captured_post"`
	Cells        []SnipCell `json:"cells"` // by Pre, then Post
	// Full is how many stacks have all the frames that lws keeps: there, frames farther
	// out that were cut off would take the place of those left out, and the matrix says
	// a little too little.
	Full uint64 `json:"full"`
	// Loss is the share of call paths that the recommendation may merge.
	Loss      float64    `json:"loss"`
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
	Paths   int     `json:"paths"` // call paths still told apart
	Merged  int     `json:"merged"`
}

// SnipAdvice is the pair to set.
type SnipAdvice struct {
	Pre    int      `json:"pre"` // further, as in SnipCell
	Post   int      `json:"post"`
	Saved  int64    `json:"saved"`
	Paths  int      `json:"paths"`
	Merged int      `json:"merged"`
	Why    string   `json:"why"`
	CMake  []string `json:"cmake"`
}

// snipped is what lws would have kept of a stack with pre more frames left out inside
// and post more outside: these only where more than that many are there.
// (BT-CAP-1)
func snipped(pcs []uint64, pre, post int) []uint64 {
	pcs = pcs[min(pre, len(pcs)):]
	if len(pcs) > post {
		pcs = pcs[:len(pcs)-post]
	}
	return pcs
}

func (c *Collector) snip(r *resolved, o Options) Snip {
	out := Snip{CapturedPre: o.CapturedPre, CapturedPost: o.CapturedPst, Loss: o.Loss}
	for depth, times := range c.depths {
		if depth >= codec.MaxDepth-o.CapturedPst {
			out.Full += times
		}
	}
	told := make(map[uint64]int32, len(c.order))
	for pre := range MaxSnip + 1 {
		for post := range MaxSnip + 1 {
			cell := SnipCell{Pre: pre, Post: post, SetPre: o.CapturedPre + pre, SetPost: o.CapturedPst + post}
			var raw uint64
			clear(told)
			for _, p := range c.order {
				pcs := snipped(r.pcs[p.n], pre, post)
				if r.isNew(told, p.n, pcs, pre, post) {
					cell.Paths++
				}
				bits := frameBits(pcs, o.Machine, codec.SearchLws)
				for _, s := range p.sizes {
					cell.Bytes += uint64(blobBytes(bits, s)) * s.count
				}
				raw += uint64(rawBytes(len(pcs), o.Machine.Word())) * p.count
			}
			cell.Mean, cell.Ratio = ratio(cell.Bytes, c.records), ratio(cell.Bytes, raw)
			out.Cells = append(out.Cells, cell)
		}
	}
	base := out.Cells[0]
	for i := range out.Cells {
		cell := &out.Cells[i]
		cell.Saved = int64(base.Bytes) - int64(cell.Bytes)
		cell.Merged = base.Paths - cell.Paths
	}
	out.Recommend = advise(out.Cells, o.Loss)
	return out
}

// isNew says whether no path before has the same addresses after the snip as path n,
// which has pcs. told is the paths so far that had not, by hash; those that share one
// stand at the numbers after it.
func (r *resolved) isNew(told map[uint64]int32, n int, pcs []uint64, pre, post int) bool {
	for h := hashOf(pcs); ; h++ {
		first, taken := told[h]
		if !taken {
			told[h] = int32(n)
			return true
		}
		if slices.Equal(snipped(r.pcs[first], pre, post), pcs) {
			return false
		}
	}
}

// advise takes, of the cells that merge no more than the share loss of the call
// paths, the one that saves most; of several, the one that leaves out least.
func advise(cells []SnipCell, loss float64) SnipAdvice {
	base := cells[0]
	best := base
	for _, cell := range cells {
		if float64(cell.Merged) > loss*float64(base.Paths) {
			continue
		}
		if cell.Saved > best.Saved || cell.Saved == best.Saved && cell.Pre+cell.Post < best.Pre+best.Post {
			best = cell
		}
	}
	a := SnipAdvice{Pre: best.Pre, Post: best.Post, Saved: best.Saved, Paths: best.Paths, Merged: best.Merged,
		CMake: []string{
			fmt.Sprintf("-DLWS_COMPRESSED_BACKTRACES_SNIP_PRE=%d", best.SetPre),
			fmt.Sprintf("-DLWS_COMPRESSED_BACKTRACES_SNIP_POST=%d", best.SetPost),
		}}
	switch {
	case best.Pre+best.Post == 0 && loss == 0:
		a.Why = "keep what is set: any further snip that saves bytes merges different call paths"
	case best.Pre+best.Post == 0:
		a.Why = "keep what is set: any further snip that saves bytes merges more call paths than allowed"
	case best.Merged == 0:
		a.Why = "saves most of all that merge no two different call paths"
	default:
		a.Why = fmt.Sprintf("saves most of all that merge at most %.3g%% of the call paths", 100*loss)
	}
	return a
}
