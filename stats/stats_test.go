package stats_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/corpus"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/stats"
)

// machines are the machines of the captures' encoders, from corpus/README.md.
var machines = map[string]codec.Machine{
	"perl": codec.MachineWrap64, "cc1": codec.MachineWrap64, "git00": codec.MachineWrap64, "i386sql": codec.MachineWrap32,
}

// collect adds the lines of a capture to a collector.
func collect(t testing.TB, name string) (*stats.Collector, []string) {
	c := stats.NewCollector(64)
	lines := strings.Split(strings.TrimSpace(string(corpus.Capture(name))), "\n")
	var s codec.Stack
	for _, line := range lines {
		blob, err := codec.Decoder{}.ParseLine(nil, []byte(line))
		if err == nil {
			err = codec.Decoder{}.Decode(&s, nil, blob)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Add(&s, blob, []byte(line))
	}
	return c, lines
}

// collectDecoded returns a collector with the true allocations, as from a dump of ~b# lines.
func collectDecoded(all []corpus.Allocation) *stats.Collector {
	c := stats.NewCollector(64)
	for _, a := range all {
		c.Add(&codec.Stack{PCs: a.PCs, Size: a.Size}, nil, nil)
	}
	return c
}

// captures returns the captures to test: one per word size, or all if LWSBT_FULL is set.
func captures() []string {
	if cmdtest.Full() {
		return corpus.Captures()
	}
	return []string{"perl", "i386sql"}
}

func options(m codec.Machine) stats.Options {
	return stats.Options{Machine: m, CapturedPre: 2, CapturedPost: 1}
}

// Each number in the report on a capture equals a second count, from the true allocations.
func TestReportAgainstTruth(t *testing.T) {
	for _, name := range captures() {
		truth := corpus.Truth(name)
		if len(truth) < 1000 {
			t.Fatalf("%s: only %d allocations", name, len(truth))
		}
		c, lines := collect(t, name)
		var lens []int
		for i, line := range lines {
			lens = append(lens, lineLen(line))
			if lens[i] != lwsLen(truth[i]) {
				t.Fatalf("%s, line %d: %d bytes, by the truth %d", name, i+1, lens[i], lwsLen(truth[i]))
			}
		}
		check{t, name, c.Report(options(machines[name])), truth, machines[name]}.all()
		check{t, name + " decoded", collectDecoded(truth).Report(options(machines[name])), truth, machines[name]}.all()
	}
}

// check compares a report with the true allocations.
type check struct {
	*testing.T
	name  string
	r     *stats.Report
	truth []corpus.Allocation
	m     codec.Machine
}

func (c check) same(what string, got, want any) {
	c.Helper()
	if g, ok := got.(float64); ok && math.Abs(g-want.(float64)) < 1e-9 {
		return
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.Errorf("%s: %s is %v, counted %v", c.name, what, got, want)
	}
}

func (c check) all() {
	c.dump()
	c.compression()
	c.bits()
	c.snip()
	c.overhead()
}

func (c check) lens(of func(corpus.Allocation) int) (all []int) {
	for _, a := range c.truth {
		all = append(all, of(a))
	}
	return all
}

func (c check) payload() (n uint64) {
	for _, a := range c.truth {
		n += a.Size
	}
	return n
}

func (c check) dump() {
	d := c.r.Dump
	unique, frames, depths := map[string]bool{}, 0, map[int]uint64{}
	for _, a := range c.truth {
		unique[pathOf(a.PCs)] = true
		frames += len(a.PCs)
		depths[len(a.PCs)]++
	}
	c.same("records", d.Records, len(c.truth))
	c.same("distinct call paths", d.DistinctPaths, len(unique))
	c.same("mean depth", d.MeanDepth, float64(frames)/float64(len(c.truth)))
	c.same("payload", d.Payload, c.payload())
	c.same("number of depths", len(d.Depths), len(depths))
	for _, n := range d.Depths {
		c.same(fmt.Sprint("stacks of depth ", n.Depth), n.Count, depths[n.Depth])
	}
}

func (c check) compression() {
	raw := func(word int) func(corpus.Allocation) int {
		return func(a corpus.Allocation) int { return word/8*len(a.PCs) + word/8 }
	}
	lws, raw32, raw64 := c.lens(lwsLen), c.lens(raw(32)), c.lens(raw(64))
	frames, unique := 0, map[string]int{}
	for _, a := range c.truth {
		frames += len(a.PCs)
		unique[pathOf(a.PCs)] = len(a.PCs)
	}
	forms := map[string]stats.Form{}
	for _, f := range c.r.Compression.Forms {
		forms[f.Name] = f
	}
	encoded := stats.FormRecorded
	if strings.HasSuffix(c.name, " decoded") {
		encoded = stats.FormLws
	}
	for name, lens := range map[string][]int{stats.FormRaw32: raw32, stats.FormRaw64: raw64, encoded: lws,
		stats.FormBest: c.lens(bestLen), stats.FormExact: lws} {
		f := forms[name]
		c.same(name, f.Bytes, sum(lens))
		c.same(name+" of raw 32", f.OfRaw32, float64(sum(lens))/float64(sum(raw32)))
		c.same(name+" of raw 64", f.OfRaw64, float64(sum(lens))/float64(sum(raw64)))
		c.same(name+" a frame", f.PerFrame, 8*float64(sum(lens))/float64(frames))
		c.same(name+" mean", f.Each.Mean, float64(sum(lens))/float64(len(lens)))
		c.same(name+" p50", f.Each.P50, nearest(lens, 50))
		c.same(name+" p90", f.Each.P90, nearest(lens, 90))
		c.same(name+" p99", f.Each.P99, nearest(lens, 99))
		c.same(name+" max", f.Each.Max, slices.Max(lens))
	}
	word := c.m.Word() / 8
	depot := len(c.truth) * (4 + word)
	for _, depth := range unique {
		depot += (depth + 1) * word
	}
	c.same("depot", forms[stats.FormDepot].Bytes, depot)
	for i, v := range c.r.Compression.Verdicts {
		raw := [][]int{raw32, raw64}[i]
		worse := 0
		for i, n := range lws {
			if n > raw[i] {
				worse++
			}
		}
		c.same(fmt.Sprint("loses at ", v.Word), v.Loses, sum(lws) > sum(raw))
		c.same(fmt.Sprint("best loses at ", v.Word), v.BestToo, sum(c.lens(bestLen)) > sum(raw))
		c.same(fmt.Sprint("worse than raw at ", v.Word), v.Worse, worse)
		c.same(fmt.Sprint("fits ", v.Word), v.Fits, v.Word == 64 || c.m.Word() == 32)
	}
	if c.r.Compression.Differ != 0 {
		c.Errorf("%s: %d of %d come out of another length", c.name, c.r.Compression.Differ, c.r.Compression.Compared)
	}
}

func (c check) bits() {
	want := map[string]int{"user bits": 0}
	total := 0
	for _, a := range c.truth {
		items := append(naiveFields(a.PCs), item{"count of the size", 6}, item{"size", significant(a.Size)})
		for _, it := range items {
			want[it.use] += it.bits
			want["spill bits"]++
		}
		want["length"] += 16
		want["padding"] += 8*(lwsLen(a)-2) - naiveBits(items)
		total += 8 * lwsLen(a)
	}
	c.same("number of fields", len(c.r.Bits), len(want))
	var share float64
	for _, b := range c.r.Bits {
		c.same(b.Field, b.Bits, want[b.Field])
		c.same(b.Field+", share", b.Share, float64(want[b.Field])/float64(total))
		c.same(b.Field+", a stack", b.PerStack, float64(want[b.Field])/float64(len(c.truth)))
		share += b.Share
	}
	c.same("shares together", share, 1.0)
}

func (c check) snip() {
	var first uint64
	for i, cell := range c.r.Snip.Cells {
		pre, post := i/5, i%5
		paths := map[string]bool{}
		lens := c.lens(func(a corpus.Allocation) int {
			a.PCs = kept(a.PCs, pre, post)
			paths[pathOf(a.PCs)] = true
			return lwsLen(a)
		})
		raw := c.lens(func(a corpus.Allocation) int { return c.m.Word() / 8 * (len(kept(a.PCs, pre, post)) + 1) })
		if i == 0 {
			first = sum(lens)
		}
		what := fmt.Sprintf("snip %d %d: ", pre, post)
		c.same(what+"pair", []int{cell.Pre, cell.Post, cell.SetPre, cell.SetPost}, []int{pre, post, 2 + pre, 1 + post})
		c.same(what+"bytes", cell.Bytes, sum(lens))
		c.same(what+"mean", cell.Mean, float64(sum(lens))/float64(len(lens)))
		c.same(what+"saved", cell.Saved, int64(first)-int64(sum(lens)))
		c.same(what+"ratio", cell.Ratio, float64(sum(lens))/float64(sum(raw)))
		c.same(what+"paths", cell.Paths, len(paths))
		c.same(what+"merged", cell.Merged, c.r.Dump.DistinctPaths-len(paths))
	}
	c.same("cells", len(c.r.Snip.Cells), 25)
	pre, post := c.advised()
	a := c.r.Snip.Recommend
	c.same("recommended", []int{a.Pre, a.Post}, []int{pre, post})
	c.same("cmake", a.CMake, []string{fmt.Sprint("-DLWS_COMPRESSED_BACKTRACES_SNIP_PRE=", 2+pre),
		fmt.Sprint("-DLWS_COMPRESSED_BACKTRACES_SNIP_POST=", 1+post)})
	full := 0
	for _, a := range c.truth {
		if len(a.PCs) >= 31 {
			full++
		}
	}
	c.same("full", c.r.Snip.Full, full)
}

// overhead uses the formulas of the table at the end of SPEC.md's clauses on memory: 12
// + 4⌈b/4⌉ and 24 + 8⌈b/8⌉.
func (c check) overhead() {
	for i, o := range c.r.Overhead {
		node, ptr := []int{12, 24}[i], []int{4, 8}[i]
		each := c.lens(func(a corpus.Allocation) int {
			return node + int(math.Ceil(float64(lwsLen(a))/float64(ptr)))*ptr
		})
		what := fmt.Sprintf("%d-bit overhead, ", o.Word)
		c.same(what+"total", o.Total, sum(each))
		c.same(what+"blobs", o.Blob, sum(c.lens(lwsLen)))
		c.same(what+"nodes", o.Node, node*len(c.truth))
		c.same(what+"padding", o.Padding, sum(each)-o.Blob-o.Node)
		c.same(what+"mean", o.Each.Mean, float64(sum(each))/float64(len(each)))
		c.same(what+"p50", o.Each.P50, nearest(each, 50))
		c.same(what+"p99", o.Each.P99, nearest(each, 99))
		c.same(what+"max", o.Each.Max, slices.Max(each))
		c.same(what+"share", o.Share, float64(sum(each))/float64(sum(each)+c.payload()))
		c.same(what+"wrapper", o.WrapperTotal, 2*sum(each))
		c.same(what+"wrapper's share", o.WrapperShare, 2*float64(sum(each))/float64(2*sum(each)+c.payload()))
		if o.Word == c.m.Word() {
			c.same("metadata", c.r.Dump.Metadata, sum(each))
		}
	}
	c.same("overheads", len(c.r.Overhead), 2)
}

// Rebased places the regions of a dump one after another: first the regions whose addresses
// are fully known, then the others in the order of their low 31 bits.
func TestRebased(t *testing.T) {
	for _, name := range captures() {
		for _, addr := range []uint64{0x400000, 0x7f0000000000, 0xffff0000} {
			truth := corpus.Truth(name)
			moved, top := move(truth, addr)
			c, _ := collect(t, name)
			rebased, m := c.Rebased(machines[name], addr)
			if want := map[bool]codec.Machine{true: codec.MachineWrap64, false: machines[name]}[top>>32 != 0]; m != want {
				t.Errorf("%s at %#x: machine %v, want %v", name, addr, m, want)
			}
			k := check{t, fmt.Sprintf("%s at %#x decoded", name, addr), rebased.Report(options(m)), moved, m}
			k.dump()
			k.bits()
			k.overhead()
		}
	}
}

// move places regions one after another from addr on, and returns the highest address.
func move(truth []corpus.Allocation, addr uint64) (out []corpus.Allocation, top uint64) {
	var all []uint64
	for _, a := range truth {
		all = append(all, a.PCs...)
	}
	slices.Sort(all)
	var regions [][]uint64
	for i, pc := range all {
		if i == 0 || pc-all[i-1] > 256<<20 {
			regions = append(regions, nil)
		}
		regions[len(regions)-1] = append(regions[len(regions)-1], pc)
	}
	slices.SortFunc(regions, func(a, b []uint64) int {
		known := func(r []uint64) int { return min(1, int(r[0]>>32)) }
		return cmp.Or(cmp.Compare(known(a), known(b)), cmp.Compare(a[0]&(1<<31-1), b[0]&(1<<31-1)))
	})
	to := map[uint64]uint64{}
	for _, r := range regions {
		for _, pc := range r {
			top = pc - r[0]/4096*4096 + addr
			to[pc] = top
		}
		addr = (top + 1<<20) / (1 << 20) * (1 << 20)
	}
	for _, a := range truth {
		pcs := make([]uint64, len(a.PCs))
		for n, pc := range a.PCs {
			pcs[n] = to[pc]
		}
		out = append(out, corpus.Allocation{Size: a.Size, PCs: pcs})
	}
	return out, top
}

// Each bit is counted once, also of blobs that lws would not write.
func TestOddBlobs(t *testing.T) {
	c := stats.NewCollector(64)
	var s codec.Stack
	add := func(blob []byte) {
		if err := (codec.Decoder{}).Decode(&s, nil, blob); err != nil {
			t.Fatal(err)
		}
		c.Add(&s, blob, nil)
	}
	add(userBlob())
	// The same stack twice, encoded by search lws and by search best. Only search best uses
	// frame 0 as the base of frame 1.
	stack := codec.Stack{Size: 5, PCs: []uint64{0x55d412345678, 0x55d412345679}}
	for _, how := range []codec.Search{codec.SearchLws, codec.SearchBest} {
		blob, err := codec.Encoder{Search: how}.AppendBlob(nil, &stack, nil)
		if err != nil {
			t.Fatal(err)
		}
		add(blob)
	}
	r := c.Report(options(codec.MachineExact64))
	got := map[string]uint64{}
	var bits uint64
	for _, b := range r.Bits {
		got[b.Field] = b.Bits
		bits += b.Bits
	}
	// Fields by hand: literals of 47 bits, three of them, and a delta of one bit; three
	// sizes of 3 bits. Spill bits: 1+2 of the first blob; 1+3+3+2 of the second; 1+3+5+2
	// of the third. Bits of the blobs: 6+7+4+10+5, then 6+2*(2+7+48)+7+4 = 131 and 5 of
	// padding, then 6+57+(2+4+2+7+2)+11 = 91 and 5 of padding; a length of 16 each.
	want := map[string]uint64{"depth": 15, "kinds": 4, "back references": 3, "signs": 1, "counts of frames": 24,
		"literal values": 141, "delta values": 1, "count of the size": 18, "size": 9, "spill bits": 3 + 9 + 11,
		"user bits": 10 + 5, "padding": 5 + 5, "length": 48}
	for field, n := range want {
		if got[field] != n {
			t.Errorf("%s: got %d bits, want %d", field, got[field], n)
		}
	}
	for _, f := range r.Compression.Forms {
		if f.Name == stats.FormRecorded && (f.Bytes*8 != bits || f.Bytes != 6+19+14) {
			t.Errorf("%d bytes in blobs, %d bits in fields", f.Bytes, bits)
		}
	}
	if r.Dump.DistinctPaths != 2 || r.Compression.Differ != 0 {
		t.Errorf("%d unique stacks, %d differ", r.Dump.DistinctPaths, r.Compression.Differ)
	}
}

// The report states that another encoder than lws's may have written the dump, but not of a
// log of device/.
func TestAnotherEncoder(t *testing.T) {
	c := stats.NewCollector(64)
	for n := range uint64(10) {
		s := codec.Stack{PCs: []uint64{0x406651 + n, 0x406652 + n}, Size: 1}
		blob, err := codec.Encoder{Machine: codec.MachineExact32, Search: codec.SearchBest}.AppendBlob(nil, &s, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Add(&s, blob, nil)
	}
	for _, device := range []bool{false, true} {
		o := options(codec.MachineExact32)
		o.Log.Device = device
		r := c.Report(o)
		if r.Compression.Differ != 10 {
			t.Errorf("%d of 10 differ", r.Compression.Differ)
		}
		var out bytes.Buffer
		if err := stats.WriteText(&out, r.Sections()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "another encoder"); got == device {
			t.Errorf("log of device/: %v, the report asks for another encoder: %v", device, got)
		}
	}
}

// The verdicts and the advice come first.
func TestAdviceFirst(t *testing.T) {
	c := stats.NewCollector(32)
	for n := range uint64(10) {
		s := codec.Stack{PCs: []uint64{0x406600 + n, 0x401000, 0x401100, 0x401200, 0x401300, 0x401400}, Size: 1}
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &s, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Add(&s, blob, nil)
	}
	var out bytes.Buffer
	if err := stats.WriteText(&out, c.Report(options(codec.MachineExact32)).Sections()); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for _, want := range []string{"32-bit words: compression ", "64-bit words: compression saves ", "Recommended: PRE 2, POST 3, which saves ",
		"    -DLWS_COMPRESSED_BACKTRACES_SNIP_POST=3", "outermost", "1. Dump", "as recorded"} {
		i := strings.Index(rest, want)
		if i < 0 {
			t.Fatalf("no %q, or not in order, in\n%s", want, out.String())
		}
		rest = rest[i:]
	}
}

// advised counts the frames at both ends that every stack shares, while at least 4
// frames of each remain. Only TestAdvice tests the advice for threads.
func (c check) advised() (pre, post int) {
	shallowest, full := 99, false
	for _, a := range c.truth {
		shallowest = min(shallowest, len(a.PCs))
		full = full || len(a.PCs) >= 31
	}
	shared := func(n int, at func(pcs []uint64) uint64) bool {
		for _, a := range c.truth {
			if n >= len(a.PCs) || at(a.PCs) != at(c.truth[0].PCs) {
				return false
			}
		}
		return true
	}
	for pre < 4 && pre < shallowest-4 && shared(pre, func(pcs []uint64) uint64 { return pcs[pre] }) {
		pre++
	}
	for post < 4 && pre+post < shallowest-4 && !full && shared(post, func(pcs []uint64) uint64 { return pcs[len(pcs)-1-post] }) {
		post++
	}
	return pre, post
}

// Frames that are the same at an end are left out, frames that distinguish stacks are
// kept, and at least four frames of each stack are kept.
func TestAdvice(t *testing.T) {
	const alloc, start, main, thread, loop = 0x400010, 0x400020, 0x400030, 0x400040, 0x400050
	app := func(n uint64) []uint64 { return []uint64{0x401000 + n, 0x402000 + n, 0x403000 + n, 0x404000 + n} }
	stack := func(n uint64, inner []uint64, outer ...uint64) []uint64 {
		return slices.Concat(inner, app(n), outer)
	}
	several := func(n int, inner []uint64, outer ...uint64) (all [][]uint64) {
		for i := range n {
			all = append(all, stack(uint64(i*8), inner, outer...))
		}
		return all
	}
	malloc := []uint64{alloc}
	full := make([]uint64, 32)
	for i := range full {
		full[i] = 0x405000 + uint64(i)
	}
	full[0] = alloc
	hide := func(pc uint64, _ bool) bool { return pc >= 0x401000 && pc < 0x402000 }
	for _, tt := range []struct {
		name      string
		stacks    [][]uint64
		hidden    func(pc uint64, lossy bool) bool
		pre, post int
		frames    string // "level address" of each, by end
	}{
		{"nothing in common", several(3, nil), nil, 0, 0, ""},
		{"the allocator, and what starts the program", several(3, malloc, main, start), nil, 1, 2,
			"innermost 0 0x400010, outermost 0 0x400020, outermost 1 0x400030"},
		{"four frames remain", [][]uint64{stack(0, malloc, start), append([]uint64{alloc}, app(8)...), {alloc, 1, 2, 3}}, nil, 0, 0, ""},
		{"one of two common frames can go", [][]uint64{stack(0, malloc, start), {alloc, 1, 2, 3, start}}, nil, 1, 0, "innermost 0 0x400010"},
		{"two threads", append(several(8, malloc, main, start), several(8, malloc, loop, thread)...), nil, 1, 2,
			"innermost 0 0x400010, outermost 0 0x400020, outermost 0 0x400040, outermost 1 0x400030, outermost 1 0x400050"},
		{"too few stacks to call them threads", append(several(3, nil, main, start), several(2, nil, loop, thread)...), nil, 0, 0, ""},
		{"a full stack has lost its outermost frames", append(several(3, malloc, start), full), nil, 1, 0, "innermost 0 0x400010"},
		{"hidden by name", several(3, nil, 0x1, 0x2), hide, 1, 1, "innermost 0 , outermost 0 0x2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := stats.NewCollector(64)
			for _, pcs := range tt.stacks {
				c.Add(&codec.Stack{PCs: pcs, Size: 16}, nil, nil)
			}
			o := options(codec.MachineExact32)
			o.Hidden = tt.hidden
			a := c.Report(o).Snip.Recommend
			var frames []string
			for _, f := range a.Frames {
				frames = append(frames, fmt.Sprintf("%s %d %s", f.End, f.Level, f.Address))
			}
			if got := strings.Join(frames, ", "); a.Pre != tt.pre || a.Post != tt.post || got != tt.frames {
				t.Errorf("PRE+%d POST+%d, %s; want PRE+%d POST+%d, %s", a.Pre, a.Post, got, tt.pre, tt.post, tt.frames)
			}
		})
	}
}

// A record with 32 frames at one word and none at the other.
func TestBothReadingsOfDepthZero(t *testing.T) {
	blob, err := codec.Decoder{}.ParseLine(nil, []byte("~m#AL39VVVUAABe/qqqqgIigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoigCURQBKIoAlEUASiKAJRFAEoiHQAAHE="))
	if err != nil {
		t.Fatal(err)
	}
	for word, depth := range map[int]float64{32: 0, 64: 32} {
		for _, m := range codec.Machines() {
			c := stats.NewCollector(word)
			var s codec.Stack
			if err := (codec.Decoder{Word: word}).Decode(&s, nil, blob); err != nil {
				t.Fatal(err)
			}
			c.Add(&s, blob, nil)
			if r := c.Report(options(m)); r.Dump.MeanDepth != depth {
				t.Errorf("word %d, machine %v: mean depth %v, want %v", word, m, r.Dump.MeanDepth, depth)
			}
		}
	}
}

// The sum of two sizes of 2^63 overflows, and the report says so.
func TestPayloadOverflow(t *testing.T) {
	c := stats.NewCollector(64)
	for n := range uint64(2) {
		if r := c.Report(options(codec.MachineExact64)); r.Dump.PayloadOver {
			t.Errorf("after %d sizes of 2^63: overflow", n)
		}
		c.Add(&codec.Stack{PCs: []uint64{1}, Size: 1 << 63}, nil, nil)
	}
	r := c.Report(options(codec.MachineExact64))
	if !r.Dump.PayloadOver || r.Dump.Payload != math.MaxUint64 {
		t.Errorf("payload %d, overflow %v", r.Dump.Payload, r.Dump.PayloadOver)
	}
	var out bytes.Buffer
	if err := stats.WriteText(&out, r.Sections()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "18,446,744,073,709,551,615 or more") {
		t.Errorf("the report does not say so:\n%s", out.String())
	}
}

// The memory per distinct call path of 12 frames is as documented.
func TestMemoryPerPath(t *testing.T) {
	const paths, limit = 20_000, 250
	rnd := rand.New(rand.NewPCG(1, 1))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := stats.NewCollector(64)
	s := codec.Stack{PCs: make([]uint64, 12)}
	var blob []byte
	for range paths {
		for n := range s.PCs {
			s.PCs[n] = 0x55d412000000 + rnd.Uint64N(1<<22)
		}
		s.Size = rnd.Uint64N(5000)
		var err error
		if blob, err = (codec.Encoder{}).AppendBlob(blob[:0], &s, nil); err != nil {
			t.Fatal(err)
		}
		c.Add(&s, blob, nil)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := float64(after.HeapAlloc-before.HeapAlloc) / paths
	if c.Records() != paths || per > limit {
		t.Errorf("%.0f bytes per call path, expected at most %d", per, limit)
	}
	t.Logf("%.0f bytes per call path", per)
}

// The sizes of a dump as ~p# lines are near those of docs/notes/callpaths.md for the same captures,
// which use the code ranges of the memory maps: perl 3,366 bytes, i386sql 8,982, cc1 15,398,
// git00 15,063. Ranges inferred from addresses differ a little.
func TestCallPathsAsMeasured(t *testing.T) {
	for name, want := range map[string]float64{"perl": 3366, "i386sql": 8982, "cc1": 15398, "git00": 15063} {
		c, _ := collect(t, name)
		rep := c.Report(stats.Options{Machine: machines[name]})
		for _, f := range rep.CallPaths.Forms {
			if f.Name == stats.PathSerial && math.Abs(float64(f.Bytes)/want-1) > 0.06 {
				t.Errorf("%s: %d bytes, %.0f were measured", name, f.Bytes, want)
			}
		}
		m := rep.CallPaths.Memory[0]
		if m.Blocks != 8*rep.Dump.Records || m.Sums != 12*uint64(rep.Dump.DistinctPaths) || m.Inline != rep.Overhead[0].Total || m.Table != m.Blocks+m.Nodes+m.Sums {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
