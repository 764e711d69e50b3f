package stats_test

import (
	"bytes"
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

// machines are the machines of the captures' encoders, from package corpus.
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
		c.Add(&s, blob)
	}
	return c, lines
}

// collectDecoded returns a collector with the true allocations, as from a dump of ~b# lines.
func collectDecoded(all []corpus.Allocation) *stats.Collector {
	c := stats.NewCollector(64)
	for _, a := range all {
		c.Add(&codec.Stack{PCs: a.PCs, Size: a.Size}, nil)
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
	frames := 0
	for _, a := range c.truth {
		frames += len(a.PCs)
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
		c.same(name+" mean", f.Mean, float64(sum(lens))/float64(len(lens)))
	}
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
		c.same(what+"mean", o.Mean, float64(sum(each))/float64(len(each)))
		c.same(what+"share", o.Share, float64(sum(each))/float64(sum(each)+c.payload()))
		if o.Word == c.m.Word() {
			c.same("metadata", c.r.Dump.Metadata, sum(each))
		}
	}
	c.same("overheads", len(c.r.Overhead), 2)
}

// Blobs that lws would not write count with their recorded lengths.
func TestOddBlobs(t *testing.T) {
	c := stats.NewCollector(64)
	var s codec.Stack
	add := func(blob []byte) {
		if err := (codec.Decoder{}).Decode(&s, nil, blob); err != nil {
			t.Fatal(err)
		}
		c.Add(&s, blob)
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
	for _, f := range r.Compression.Forms {
		if f.Name == stats.FormRecorded && f.Bytes != 6+19+14 {
			t.Errorf("%d bytes in blobs", f.Bytes)
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
		c.Add(&s, blob)
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
		c.Add(&s, blob)
	}
	var out bytes.Buffer
	if err := stats.WriteText(&out, c.Report(options(codec.MachineExact32)).Sections()); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for _, want := range []string{"32-bit words: compression ", "64-bit words: compression saves ", "Recommended: PRE 2, POST 3, which saves ",
		"    -DLWS_COMPRESSED_BACKTRACES_SNIP_POST=3", "outermost", "Compression", "as recorded"} {
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
	for _, tt := range []struct {
		name      string
		stacks    [][]uint64
		pre, post int
		frames    string // "level address" of each, by end
	}{
		{"nothing in common", several(3, nil), 0, 0, ""},
		{"the allocator, and what starts the program", several(3, malloc, main, start), 1, 2,
			"innermost 0 0x400010, outermost 0 0x400020, outermost 1 0x400030"},
		{"four frames remain", [][]uint64{stack(0, malloc, start), append([]uint64{alloc}, app(8)...), {alloc, 1, 2, 3}}, 0, 0, ""},
		{"one of two common frames can go", [][]uint64{stack(0, malloc, start), {alloc, 1, 2, 3, start}}, 1, 0, "innermost 0 0x400010"},
		{"two threads", append(several(8, malloc, main, start), several(8, malloc, loop, thread)...), 1, 2,
			"innermost 0 0x400010, outermost 0 0x400020, outermost 0 0x400040, outermost 1 0x400030, outermost 1 0x400050"},
		{"too few stacks to call them threads", append(several(3, nil, main, start), several(2, nil, loop, thread)...), 0, 0, ""},
		{"a full stack has lost its outermost frames", append(several(3, malloc, start), full), 1, 0, "innermost 0 0x400010"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := stats.NewCollector(64)
			for _, pcs := range tt.stacks {
				c.Add(&codec.Stack{PCs: pcs, Size: 16}, nil)
			}
			o := options(codec.MachineExact32)
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
			c.Add(&s, blob)
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
		c.Add(&codec.Stack{PCs: []uint64{1}, Size: 1 << 63}, nil)
	}
	r := c.Report(options(codec.MachineExact64))
	if !r.Dump.PayloadOver || r.Dump.Payload != math.MaxUint64 {
		t.Errorf("payload %d, overflow %v", r.Dump.Payload, r.Dump.PayloadOver)
	}
	var out bytes.Buffer
	if err := stats.WriteText(&out, r.Sections()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "2^64-1 bytes or more") {
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
		c.Add(&s, blob)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := float64(after.HeapAlloc-before.HeapAlloc) / paths
	if c.Records() != paths || per > limit {
		t.Errorf("%.0f bytes per call path, expected at most %d", per, limit)
	}
	t.Logf("%.0f bytes per call path", per)
}
