package stats_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/corpus"
	"github.com/lwsbt/lwsbt/stats"
)

// machines are what the captures' encoders ran on, by corpus/README.md.
var machines = map[string]codec.Machine{
	"perl": codec.MachineWrap64, "cc1": codec.MachineWrap64, "git00": codec.MachineWrap64, "i386sql": codec.MachineWrap32,
}

// collect reads a capture's lines.
func collect(t testing.TB, name string) (*stats.Collector, []string) {
	c := stats.NewCollector()
	lines := strings.Split(strings.TrimSpace(string(corpus.Capture(name))), "\n")
	var s codec.Stack
	for _, line := range lines {
		blob, err := codec.ParseLine(nil, []byte(line))
		if err == nil {
			err = codec.Decode(&s, blob)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Add(&s, blob, []byte(line))
	}
	return c, lines
}

// collectDecoded takes the truth as a dump of ~b# lines would tell it.
func collectDecoded(all []corpus.Allocation) *stats.Collector {
	c := stats.NewCollector()
	for _, a := range all {
		c.Add(&codec.Stack{PCs: a.PCs, Size: a.Size}, nil, nil)
	}
	return c
}

func options(m codec.Machine) stats.Options {
	return stats.Options{Machine: m, CapturedPre: 2, CapturedPst: 1, Top: 5}
}

// Each number of the report on a capture, counted again from the capture's truth.
func TestReportAgainstTruth(t *testing.T) {
	for _, name := range corpus.Captures() {
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

// check holds a report to the truth.
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
	c.memory()
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
	c.same("unique stacks", d.UniqueStacks, len(unique))
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
	for name, lens := range map[string][]int{stats.FormRaw32: raw32, stats.FormRaw64: raw64, stats.FormLws: lws,
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
	var best stats.SnipCell
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
			first, best = sum(lens), cell
		}
		what := fmt.Sprintf("snip %d %d: ", pre, post)
		c.same(what+"pair", []int{cell.Pre, cell.Post, cell.SetPre, cell.SetPost}, []int{pre, post, 2 + pre, 1 + post})
		c.same(what+"bytes", cell.Bytes, sum(lens))
		c.same(what+"mean", cell.Mean, float64(sum(lens))/float64(len(lens)))
		c.same(what+"saved", cell.Saved, int64(first)-int64(sum(lens)))
		c.same(what+"ratio", cell.Ratio, float64(sum(lens))/float64(sum(raw)))
		c.same(what+"paths", cell.Paths, len(paths))
		c.same(what+"merged", cell.Merged, c.r.Dump.UniqueStacks-len(paths))
		if len(paths) == c.r.Dump.UniqueStacks && cell.Saved > best.Saved {
			best = cell
		}
	}
	c.same("cells", len(c.r.Snip.Cells), 25)
	a := c.r.Snip.Recommend
	c.same("recommended", []int{a.Pre, a.Post, int(a.Saved), a.Merged}, []int{best.Pre, best.Post, int(best.Saved), 0})
	c.same("cmake", a.CMake, []string{fmt.Sprint("-DLWS_COMPRESSED_BACKTRACES_SNIP_PRE=", 2+best.Pre),
		fmt.Sprint("-DLWS_COMPRESSED_BACKTRACES_SNIP_POST=", 1+best.Post)})
	full := 0
	for _, a := range c.truth {
		if len(a.PCs) >= 31 {
			full++
		}
	}
	c.same("full", c.r.Snip.Full, full)
}

// overhead by the table at the end of SPEC.md's clauses on memory: 12 + 4⌈b/4⌉ and
// 24 + 8⌈b/8⌉.
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

func (c check) memory() {
	m := c.r.Memory
	known := func(pc uint64) string { // as the report names it
		if c.m == codec.MachineWrap64 && pc>>32 != 0 && !strings.HasSuffix(c.name, "decoded") {
			return fmt.Sprintf("…%08x", pc&(1<<31-1))
		}
		return fmt.Sprintf("%#x", pc)
	}
	sites, paths := map[string]*stats.Spot{}, map[string]*stats.Spot{}
	count := func(in map[string]*stats.Spot, pcs []uint64, size uint64) {
		var names []string
		for _, pc := range pcs {
			names = append(names, known(pc))
		}
		key := strings.Join(names, " ")
		if in[key] == nil {
			in[key] = &stats.Spot{Addresses: names}
		}
		in[key].Bytes += size
		in[key].Count++
	}
	sizes := map[int]stats.SizeCount{}
	for _, a := range c.truth {
		count(paths, a.PCs, a.Size)
		count(sites, a.PCs[:1], a.Size)
		n := sizes[significant(a.Size)]
		n.Count++
		n.Bytes += a.Size
		sizes[significant(a.Size)] = n
	}
	c.same("sites", m.Sites, len(sites))
	c.same("paths", m.Paths, len(paths))
	for _, l := range []struct {
		what    string
		got     []stats.Spot
		want    map[string]*stats.Spot
		byBytes bool
	}{{"sites by bytes", m.SitesByBytes, sites, true}, {"sites by count", m.SitesByCount, sites, false},
		{"paths by bytes", m.PathsByBytes, paths, true}, {"paths by count", m.PathsByCount, paths, false}} {
		var ranks []uint64
		for _, s := range l.want {
			ranks = append(ranks, map[bool]uint64{true: s.Bytes, false: s.Count}[l.byBytes])
		}
		slices.SortFunc(ranks, func(a, b uint64) int { return cmp.Compare(b, a) })
		c.same("length of "+l.what, len(l.got), min(5, len(ranks)))
		for i, s := range l.got {
			want := l.want[strings.Join(s.Addresses, " ")]
			if want == nil {
				c.Errorf("%s: %s: %v is none", c.name, l.what, s.Addresses)
				continue
			}
			c.same(l.what+" bytes", s.Bytes, want.Bytes)
			c.same(l.what+" count", s.Count, want.Count)
			rank, share := s.Count, float64(s.Count)/float64(len(c.truth))
			if l.byBytes {
				rank, share = s.Bytes, float64(s.Bytes)/float64(c.payload())
			}
			c.same(fmt.Sprint(l.what, ", rank ", i+1), rank, ranks[i])
			c.same(l.what+" share", s.Share, share)
		}
	}
	c.same("sizes", len(m.AllocationSize), len(sizes))
	for _, got := range m.AllocationSize {
		want := sizes[significant(got.From)]
		c.same(fmt.Sprint("sizes from ", got.From), []uint64{got.Count, got.Bytes}, []uint64{want.Count, want.Bytes})
		if significant(got.From) != significant(got.To) || significant(got.To+1) == significant(got.To) {
			c.Errorf("%s: sizes from %d to %d", c.name, got.From, got.To)
		}
	}
}

// At another load address, the regions of a dump lie one after another: those of
// which all is known first, the others in the order of their low 31 bits.
func TestRebased(t *testing.T) {
	for _, name := range corpus.Captures() {
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
			k.memory()
		}
	}
}

// move lays regions one after another from addr on, and returns the highest address.
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

// Blobs that lws would not have written: each bit is still counted once.
func TestOddBlobs(t *testing.T) {
	c := stats.NewCollector()
	var s codec.Stack
	add := func(blob []byte) {
		if err := codec.Decode(&s, blob); err != nil {
			t.Fatal(err)
		}
		c.Add(&s, blob, nil)
	}
	add(userBlob())
	// The same stack twice, by lws and by search best, which base frame 1 on frame 0;
	// lws does not.
	stack := codec.Stack{Size: 5, PCs: []uint64{0x55d412345678, 0x55d412345679}}
	for _, how := range []codec.Search{codec.SearchLws, codec.SearchBest} {
		blob, err := codec.AppendBlob(nil, &stack, codec.MachineExact64, how)
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
		if f.Name == stats.FormLws && (f.Bytes*8 != bits || f.Bytes != 6+19+14) {
			t.Errorf("%d bytes in blobs, %d bits in fields", f.Bytes, bits)
		}
	}
	if r.Dump.UniqueStacks != 2 || r.Compression.Differ != 0 {
		t.Errorf("%d unique stacks, %d differ", r.Dump.UniqueStacks, r.Compression.Differ)
	}
}

// A dump that another encoder wrote is noticed.
func TestAnotherEncoder(t *testing.T) {
	c := stats.NewCollector()
	for n := range uint64(10) {
		s := codec.Stack{PCs: []uint64{0x406651 + n, 0x406652 + n}, Size: 1}
		blob, err := codec.AppendBlob(nil, &s, codec.MachineExact32, codec.SearchBest)
		if err != nil {
			t.Fatal(err)
		}
		c.Add(&s, blob, nil)
	}
	r := c.Report(options(codec.MachineExact32))
	if r.Compression.Differ != 10 {
		t.Errorf("%d of 10 differ", r.Compression.Differ)
	}
	var out bytes.Buffer
	if err := stats.WriteText(&out, r.Sections()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "another encoder") {
		t.Error("the report does not say so")
	}
}

// The allowed loss picks among pairs: by hand, on five stacks.
func TestRecommend(t *testing.T) {
	stacks := [][]uint64{
		{0x401001, 0x402000, 0x403000, 0x404000},
		{0x401002, 0x402000, 0x403000, 0x404000},
		{0x401003, 0x402000, 0x403000, 0x404000},
		{0x401001, 0x402000, 0x403000, 0x404001},
		{0x401001, 0x402001, 0x403000, 0x404000},
	}
	// One frame less outside merges the first and the fourth, two less no more than
	// that, three less the fifth with them. One less inside merges the first three, two or
	// three less all but the fourth. Four less outside is more than can be: nothing is.
	c := stats.NewCollector()
	for _, pcs := range stacks {
		c.Add(&codec.Stack{PCs: pcs, Size: 16}, nil, nil)
	}
	o := options(codec.MachineExact32)
	for _, k := range []struct {
		loss              float64
		pre, post, merged int
	}{
		{0, 0, 0, 0},
		{0.2, 0, 2, 1},
		{0.4, 0, 3, 2},
		{0.6, 0, 3, 2}, // nothing that merges three leaves less than one frame
		{0.8, 4, 0, 4}, // nothing is left
		{1, 4, 0, 4},
	} {
		o.Loss = k.loss
		a := c.Report(o).Snip.Recommend
		if a.Pre != k.pre || a.Post != k.post || a.Merged != k.merged || a.Paths != 5-k.merged {
			t.Errorf("loss %v: got %+v, want PRE+%d POST+%d, %d merged", k.loss, a, k.pre, k.post, k.merged)
		}
	}
}

func TestCompare(t *testing.T) {
	a, b := stats.NewCollector(), stats.NewCollector()
	add := func(c *stats.Collector, n int, size uint64, pcs ...uint64) {
		for range n {
			c.Add(&codec.Stack{PCs: pcs, Size: size}, nil, nil)
		}
	}
	add(a, 3, 100, 0x10, 0x20) // stays
	add(b, 3, 100, 0x10, 0x20)
	add(a, 2, 50, 0x11, 0x20) // grows by 10 and 500 bytes
	add(b, 12, 50, 0x11, 0x20)
	add(a, 1, 7000, 0x12) // gone
	add(b, 40, 1, 0x13)   // new, many and small
	add(a, 5, 10, 0x14)   // fewer, larger
	add(b, 1, 90, 0x14)
	got := stats.Compare(a, b, "A", "B")
	want := "{500 10} {40 40} {40 -4} {-7000 -1} "
	order := ""
	for _, p := range got.Paths {
		order += fmt.Sprint(p.Growth) + " "
	}
	if order != want || got.Growth != (stats.Growth{Bytes: 500 + 40 + 40 - 7000, Count: 45}) || got.New != 1 || got.Gone != 1 {
		t.Errorf("got %s%+v, new %d, gone %d\nwant %s", order, got.Growth, got.New, got.Gone, want)
	}
	// Lossy dumps of one program are compared by what is known of their addresses: a
	// capture has not grown over itself, and half of it has shrunk.
	perl, _ := collect(t, "perl")
	if same := stats.Compare(perl, perl, "A", "B"); len(same.Paths) != 0 || same.Growth != (stats.Growth{}) {
		t.Errorf("perl grew over itself: %+v", same)
	}
}
