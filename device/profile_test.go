package device

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/gen"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// A held is what a call path holds, and, with a history, what it held since the boot.
type held struct{ live, bytes, allocs, allocBytes, peak uint64 }

// plus is the sum of what two entries hold; their peaks may be of one time.
func (h held) plus(o held) held {
	return held{h.live + o.live, h.bytes + o.bytes, h.allocs + o.allocs, h.allocBytes + o.allocBytes, h.peak + o.peak}
}

// A pathDump is a dump of a device as a reader has it, by path.
type pathDump struct {
	held  map[string]held
	end   map[string]uint64 // keys of ~h#end
	begin map[string]string
	lines int // characters of ~p# lines, with line ends
}

// pathKey returns a path as text: its base and the addresses of its frames.
func pathKey(base callpath.Base, frames []callpath.Frame, address func(callpath.Frame) uint64) string {
	var b strings.Builder
	fmt.Fprint(&b, base, ":")
	for _, f := range frames {
		fmt.Fprintf(&b, "/%x", address(f))
	}
	return b.String()
}

// readDumps reads a log of a device with codec/callpath. It fails for anything that a reader rejects, and
// what sums, sequence and lengths do not confirm.
func readDumps(t testing.TB, log []byte, limit int) []pathDump {
	t.Helper()
	r := dumpReader{TB: t, limit: limit, state: map[string]held{}, written: map[callpath.ID]held{}}
	for text := range bytes.Lines(log) {
		text = bytes.TrimSuffix(text, []byte("\n"))
		if bytes.HasPrefix(text, []byte("~p#")) {
			r.entries(text)
			continue
		}
		var h codec.Header
		if err := codec.ParseHeader(&h, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		r.header(&h, text)
	}
	return r.dumps
}

type dumpReader struct {
	testing.TB
	limit   int
	dumps   []pathDump
	names   callpath.Names
	ranges  callpath.Ranges
	line    callpath.Line
	state   map[string]held
	written map[callpath.ID]held // of the open dump
	lines   uint64
	diff    bool
}

// entries reads a ~p# line.
func (r *dumpReader) entries(text []byte) {
	if err := r.line.Parse(text); err != nil {
		r.Fatalf("%s: %v", text, err)
	}
	d := &r.dumps[len(r.dumps)-1]
	if d.end != nil || len(text) > r.limit || uint64(r.line.Seq) != r.lines%4096 ||
		strconv.Itoa(int(r.line.Dump)) != d.begin["number"] {
		r.Fatalf("%s: %d characters, sequence %d, dump %d; want line %d of dump %s", text, len(text), r.line.Seq,
			r.line.Dump, r.lines, d.begin["number"])
	}
	r.lines++
	d.lines += len(text) + 1
	var e callpath.Entry
	for r.line.Next(&e) {
		id := r.names.Add(&e.Path)
		if !e.Definition {
			r.written[id] = r.written[id].plus(held{e.Live, e.Bytes, e.Allocs, e.AllocBytes, e.Peak})
		}
	}
}

func (r *dumpReader) header(h *codec.Header, text []byte) {
	keys, numbers := map[string]string{"number": strconv.Itoa(int(h.Number % 64))}, map[string]uint64{}
	for _, k := range h.Keys {
		keys[k.Key] = k.Value
		numbers[k.Key], _ = strconv.ParseUint(k.Value, 10, 64)
	}
	switch h.Verb {
	case codec.VerbBoot:
		r.ranges.Shift = uint8(numbers["shift"])
		code, ok := codec.ParseRanges(keys["code"])
		if !ok {
			r.Fatalf("%s: no code", text)
		}
		for _, x := range code {
			r.ranges.Add(x, "")
		}
	case codec.VerbBegin:
		r.diff = keys["k"] == "diff"
		if numbers["l"] != r.lines || !r.diff && keys["k"] != "paths" ||
			r.diff && (len(r.dumps) == 0 || keys["base"] != r.dumps[len(r.dumps)-1].begin["N"]) {
			r.Fatalf("%s, want l=%d, and the dump before as a base", text, r.lines)
		}
		keys["N"] = strconv.Itoa(int(h.Number))
		r.dumps = append(r.dumps, pathDump{begin: keys})
		clear(r.written)
	case codec.VerbEnd:
		r.end(numbers, text)
	}
}

// end ends a dump.
func (r *dumpReader) end(numbers map[string]uint64, text []byte) {
	var all held
	sums := map[string]held{}
	for id, v := range r.written {
		all = all.plus(v)
		p := r.names.Path(id, nil)
		if p.Base == callpath.Named {
			r.Fatalf("%s: name %08x is not known", text, p.Outer)
		}
		key := pathKey(p.Base, p.Frames, func(f callpath.Frame) uint64 {
			address, _, ok := r.ranges.Address(f)
			if f.Escaped {
				return f.Value
			}
			if !ok {
				r.Fatalf("offset %x is beyond the code", f.Value)
			}
			return address
		})
		sums[key] = sums[key].plus(v)
	}
	if numbers["n"] != all.live || numbers["b"] != all.bytes || numbers["l"] != r.lines {
		r.Fatalf("%s: the lines have n=%d b=%d l=%d", text, all.live, all.bytes, r.lines)
	}
	if !r.diff {
		clear(r.state)
	}
	maps.Copy(r.state, sums)
	maps.DeleteFunc(r.state, func(_ string, v held) bool { return v.live == 0 && v.allocs == 0 })
	d := &r.dumps[len(r.dumps)-1]
	d.held, d.end = maps.Clone(r.state), numbers
}

// A tableRun asks test/profile.c's table for counts, and keeps a model.
type tableRun struct {
	*rand.Rand
	paths   []tablePath
	blocks  []tableBlock // live ones
	made    int
	model   map[string]held
	history bool // whether the model has what paths held since the boot
	script  strings.Builder
	want    []map[string]held // at each dump
}

type tablePath struct {
	base   int
	frames []uint64 // outermost first
	key    string
}

type tableBlock struct {
	number int
	path   *tablePath
	size   uint64
}

const tableRanges = "8000000-8060000,20000000-20000800"

func newTableRun(seed uint64, paths, depth int) *tableRun {
	r := &tableRun{Rand: rand.New(rand.NewPCG(seed, 21)), model: map[string]held{}}
	for range paths {
		var p tablePath
		if len(r.paths) > 0 && r.IntN(8) > 0 { // outer frames of another one
			other := r.paths[r.IntN(len(r.paths))]
			p.base = other.base
			p.frames = slices.Clone(other.frames[:r.IntN(len(other.frames)+1)])
		} else if r.IntN(4) == 0 {
			p.base = 1
		}
		for n := r.IntN(depth + 1); len(p.frames) < n; {
			pc := 0x8000000 + 2*r.Uint64N(0x30000)
			switch r.IntN(30) {
			case 0:
				pc = 0x20000000 + 2*r.Uint64N(0x400)
			case 1:
				pc = r.Uint64N(1 << 32) // most of them outside
			}
			p.frames = append(p.frames, pc)
		}
		var frames []callpath.Frame
		for _, pc := range p.frames {
			frames = append(frames, callpath.Frame{Value: pc})
		}
		p.key = pathKey(callpath.Base(p.base), frames, func(f callpath.Frame) uint64 { return f.Value })
		r.paths = append(r.paths, p)
	}
	return r
}

func (r *tableRun) count(p *tablePath) { r.counted(p, r.Uint64N(1<<r.IntN(13))) }

func (r *tableRun) counted(p *tablePath, size uint64) {
	b := tableBlock{r.made, p, size}
	fmt.Fprintf(&r.script, "c %d %d", p.base, b.size)
	for i, pc := range slices.Backward(p.frames) {
		fmt.Fprintf(&r.script, "%c%x", " ,"[min(1, len(p.frames)-1-i)], pc)
	}
	if len(p.frames) == 0 {
		r.script.WriteString(" -")
	}
	r.script.WriteString("\n")
	r.made++
	r.blocks = append(r.blocks, b)
	v := r.model[p.key]
	v.live++
	v.bytes += b.size
	if r.history {
		v.allocs++
		v.allocBytes += b.size
		v.peak = max(v.peak, v.bytes)
	}
	r.model[p.key] = v
}

func (r *tableRun) free(i int) {
	b := r.blocks[i]
	r.blocks = slices.Delete(r.blocks, i, i+1)
	fmt.Fprintln(&r.script, "f", b.number)
	v := r.model[b.path.key]
	v.live--
	v.bytes -= b.size
	if r.model[b.path.key] = v; v.live == 0 && !r.history {
		delete(r.model, b.path.key)
	}
}

func (r *tableRun) dump(flags int) {
	fmt.Fprintln(&r.script, "d", len(r.want), flags)
	r.want = append(r.want, maps.Clone(r.model))
}

// random counts and frees, and dumps every now and then.
func (r *tableRun) random(operations int) {
	for i := range operations {
		if n := len(r.blocks); n > 0 && r.IntN(20) < 9+i*2/operations {
			r.free(r.IntN(n))
		} else {
			r.count(&r.paths[r.IntN(len(r.paths))])
		}
		if r.IntN(40) == 0 {
			r.dump(r.IntN(8))
		}
	}
	r.dump(0)
}

// overhead returns what the stacks of the script's blocks take in front of them, in bytes.
func (r *tableRun) overhead(t *testing.T, b build) int {
	t.Helper()
	argv := b.argv(b.make(t, "profile"), "overhead", "table", "0", "0", "0", tableRanges, "1", "120")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(r.script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(argv, " "), err)
	}
	return n
}

func (r *tableRun) run(t *testing.T, b build, nodes, entries, sample, limit int) []pathDump {
	t.Helper()
	args := []string{"table", strconv.Itoa(nodes), strconv.Itoa(entries), strconv.Itoa(sample),
		tableRanges, "1", strconv.Itoa(limit)}
	if r.history {
		args = append([]string{"history"}, args...)
	}
	argv := b.argv(b.make(t, "profile"), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(r.script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	dumps := readDumps(t, out, limit)
	if len(dumps) != len(r.want) {
		t.Fatalf("%d dumps, want %d", len(dumps), len(r.want))
	}
	return dumps
}

// Of random counts and frees, each dump, whole, difference, by name, sorted or not, is what a plain
// model holds, path by path.
func TestProfileModel(t *testing.T) {
	eachHeap(t, func(t *testing.T, b build) {
		for seed, c := range []struct{ paths, depth, sample, limit int }{{60, 12, 0, 120}, {300, 30, 0, 120}, {30, 8, 1000, 96}} {
			r := newTableRun(uint64(seed), c.paths, c.depth)
			r.random(1500)
			names := false
			for i, d := range r.run(t, b, 16382/2, 2000, c.sample, c.limit) {
				if !maps.Equal(d.held, r.want[i]) {
					t.Fatalf("seed %d, dump %d (%v):\n got %v\nwant %v", seed, i, d.begin, d.held, r.want[i])
				}
				if d.end["cut"] != 0 {
					t.Errorf("seed %d, dump %d: cut=%d in a table that is large enough", seed, i, d.end["cut"])
				}
				names = names || d.lines < 20*len(d.held)
			}
			if !names {
				t.Errorf("seed %d: no dump is as short as one of names", seed)
			}
		}
	})
}

// With a history, dumps have the allocations, bytes and peak of each path since the boot, also of paths without blocks.
func TestProfileHistory(t *testing.T) {
	eachHeap(t, func(t *testing.T, b build) {
		r := newTableRun(5, 100, 12)
		r.history = true
		r.random(1500)
		gone := 0
		for i, d := range r.run(t, b, 16382/2, 2000, 0, 120) {
			if !maps.Equal(d.held, r.want[i]) {
				t.Fatalf("dump %d (%v):\n got %v\nwant %v", i, d.begin, d.held, r.want[i])
			}
			for _, v := range d.held {
				if v.live == 0 && v.peak > 0 {
					gone++
				}
			}
		}
		if gone == 0 {
			t.Error("no dump has a path whose blocks were all freed")
		}
	})
}

// sums asks for counts and dumps by a heap that keeps the stacks in front of the blocks and adds them up in dumps.
func sums(seed uint64, paths int) *tableRun {
	r := newTableRun(seed, paths, 12)
	for i := range r.paths { // the stack of a block does not say that it was cut
		p := &r.paths[i]
		p.base, p.key = 0, "0"+p.key[1:]
	}
	r.script.Reset()
	for range 400 {
		r.count(&r.paths[r.IntN(len(r.paths))])
	}
	r.dump(0)
	for range 300 {
		r.free(r.IntN(len(r.blocks)))
	}
	for dump := range 17 {
		r.dump(2 * min(1, dump))
	}
	return r
}

// Such dumps are what a plain model holds.
func TestSums(t *testing.T) {
	eachHeap(t, func(t *testing.T, b build) {
		for seed, paths := range []int{20, 150} {
			r := sums(uint64(seed), paths)
			for i, d := range r.run(t, b, 0, 0, 0, 120) {
				if !maps.Equal(d.held, r.want[i]) {
					t.Fatalf("seed %d, dump %d:\n got %v\nwant %v", seed, i, d.held, r.want[i])
				}
			}
		}
	})
}

// Packets are as long as whole lines allow, and together the text.
func TestPackets(t *testing.T) {
	program := builds[0].make(t, "profile")
	r := rand.New(rand.NewPCG(1, 21))
	for _, size := range []int{1, 50, 1280} {
		var text []byte
		for range 300 {
			for range r.IntN(130) {
				text = append(text, byte('a'+r.IntN(26)))
			}
			text = append(text, '\n')
		}
		cmd := exec.Command(program, "packets", strconv.Itoa(size))
		cmd.Stdin = bytes.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.ReplaceAll(out, []byte{0}, nil), text) {
			t.Fatalf("size %d: the packets are not the text", size)
		}
		packets := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
		for i, p := range packets[:len(packets)-1] {
			next, _, _ := bytes.Cut(packets[i+1], []byte("\n"))
			whole := bytes.HasSuffix(p, []byte("\n"))
			if len(p) > size || len(p) == 0 || whole && len(p)+len(next)+1 <= size || !whole && (len(p) < size || bytes.Contains(p, []byte("\n"))) {
				t.Fatalf("size %d: packet %q before %q", size, p, next)
			}
		}
	}
}

func TestDeviceHeaders(t *testing.T) {
	out, err := exec.Command(builds[0].make(t, "profile"), "headers").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []codec.Header{
		{Verb: codec.VerbBoot, Keys: []codec.HeaderKey{{Key: "prog", Value: "my app"}, {Key: "w", Value: "64"}, {Key: "build", Value: "01020304ffee"},
			{Key: "dev", Value: "serial 7"}, {Key: "fw", Value: "1.2.3%"}, {Key: "code", Value: "8000000+60000,20000000+800"}, {Key: "shift", Value: "1"}, {Key: "text", Value: "abcdef12"},
			{Key: "heap", Value: "20001000+f000"}}},
		{Verb: codec.VerbHeap, Keys: []codec.HeaderKey{{Key: "t", Value: "17"}, {Key: "size", Value: "4000"}, {Key: "free", Value: "300"},
			{Key: "largest", Value: "20"}, {Key: "min", Value: "1"}}},
		{Verb: codec.VerbHeap, Keys: []codec.HeaderKey{{Key: "name", Value: "dma 2"}, {Key: "size", Value: "4000"}, {Key: "free", Value: "300"},
			{Key: "largest", Value: "20"}, {Key: "min", Value: "1"}}},
		{Verb: "thread", Number: 3, HasNumber: true, Keys: []codec.HeaderKey{{Key: "name", Value: "net io"}}},
	}
	lines := bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))
	if len(lines) != len(want) {
		t.Fatalf("%d lines: %s", len(lines), out)
	}
	for i, line := range lines {
		var h codec.Header
		if err := codec.ParseHeader(&h, line); err != nil || h.Verb != want[i].Verb || h.Number != want[i].Number || !slices.Equal(h.Keys, want[i].Keys) {
			t.Errorf("%s: %v, read as %+v", line, err, h)
		}
	}
}

// sum returns what all paths hold.
func sum(paths map[string]held) (all held) {
	for _, v := range paths {
		all = all.plus(v)
	}
	return all
}

// sound returns why a dump of a table that was full cannot be of what a model holds, or nil.
func (d *pathDump) sound(model map[string]held) error {
	got, want, exact := sum(d.held), sum(model), uint64(0)
	if got != want {
		return fmt.Errorf("%+v in all, want %+v", got, want)
	}
	for key, v := range d.held {
		below := uint64(0) // blocks that can have been counted there
		for other, w := range model {
			if other == key || strings.HasPrefix(other, key+"/") || key == "1:" {
				below += w.live
			}
		}
		if v.live > below {
			return fmt.Errorf("%s holds %d, of %d below it", key, v.live, below)
		}
		exact += min(v.live, model[key].live)
	}
	if cut := d.end["cut"]; cut < want.live-exact || cut > want.live {
		return fmt.Errorf("cut=%d of %d blocks, %d of which are under their own path", cut, want.live, exact)
	}
	return nil
}

// A table that is full counts what has no place under outer frames of it, says so, and has room again
// after these blocks were freed and dumps were made.
func TestProfileFull(t *testing.T) {
	for seed := range uint64(4) {
		r := newTableRun(seed, 200, 20)
		for range 1000 {
			r.count(&r.paths[r.IntN(len(r.paths))])
		}
		r.dump(4)
		kept := map[string]held{}
		for len(r.blocks) > 3 {
			r.free(r.IntN(len(r.blocks)))
		}
		r.dump(1) // says that they are gone
		r.dump(0)
		few := slices.Clone(r.paths[:5])
		for range 50 {
			r.count(&few[r.IntN(len(few))])
		}
		for _, b := range r.blocks[3:] {
			kept[b.path.key] = kept[b.path.key].plus(held{live: 1, bytes: b.size})
		}
		r.dump(0)
		dumps := r.run(t, builds[0], 300+int(seed), 40, 0, 120)
		for i, d := range dumps {
			if err := d.sound(r.want[i]); err != nil {
				t.Errorf("seed %d, dump %d: %v", seed, i, err)
			}
			if i == 0 && d.end["cut"] < 100 {
				t.Errorf("seed %d: cut=%d, in a table that is too small", seed, d.end["cut"])
			}
		}
		last := dumps[len(dumps)-1].held
		for key, v := range kept {
			if last[key].live < v.live || last[key].bytes < v.bytes {
				t.Errorf("seed %d: %s holds %+v after the table was emptied, want %+v at least", seed, key, last[key], v)
			}
		}
	}
}

// A block of s bytes is sampled with a probability of 1 - exp(-s/mean), to 5 standard deviations and the
// logarithm's error.
func TestProfileSample(t *testing.T) {
	const times, mean = 40000, 4096
	program := builds[0].make(t, "profile")
	for _, size := range []int{1, 16, 400, 4096, 12000} {
		for seed := 1; seed <= 3; seed++ {
			out, err := exec.Command(program, "sample", strconv.Itoa(seed*7919), strconv.Itoa(mean), strconv.Itoa(size), strconv.Itoa(times)).Output()
			if err != nil {
				t.Fatal(err)
			}
			n, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil {
				t.Fatal(err)
			}
			p := 1 - math.Exp(-float64(size)/mean)
			if off := math.Abs(float64(n) - times*p); off > 5*math.Sqrt(times*p*(1-p))+0.003*times*p {
				t.Errorf("seed %d: %d of %d blocks of %d bytes, want about %.0f", seed, n, times, size, times*p)
			}
		}
	}
}

// malloc and its kin with a profile: test/profile.c.
func TestProfileHeap(t *testing.T) {
	eachHeap(t, func(t *testing.T, b build) {
		program := b.make(t, "profile")
		for seed := range 4 {
			argv := b.argv(program, "heap", strconv.Itoa(seed), "2000")
			out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
			if err != nil || !bytes.HasSuffix(out, []byte("\nok\n")) {
				t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out[max(0, len(out)-2000):])
			}
		}
	})
}

// 8 threads allocate, resize, free and dump under ThreadSanitizer, and the dumps can be read.
func TestProfileThreads(t *testing.T) {
	cmdtest.Long(t)
	b := build{cc: "gcc", cflags: "-O1 -g -fsanitize=thread"}
	cmd := exec.Command(b.make(t, "profile"), "threads", "2000")
	out, err := cmd.Output()
	if err != nil || !bytes.HasSuffix(out, []byte("ok\n")) {
		t.Fatalf("%v\n%s", err, out[max(0, len(out)-2000):])
	}
	log := append([]byte("~h#boot w=64 code=8000000+100000 shift=1\n"), bytes.TrimSuffix(out, []byte("ok\n"))...)
	if dumps := readDumps(t, log, 120); len(dumps) < 30 {
		t.Errorf("%d dumps", len(dumps))
	}
}

// What docs/device.md says of a profile's memory and dumps, on a 32-bit machine, for the synthetic program of a
// Cortex-M, 2,000 live blocks of 163 call paths:
//
//	LWSBT_FULL=1 go test ./device -run ProfileFigures [-update]
func TestProfileFigures(t *testing.T) {
	cmdtest.Long(t)
	model, ok := gen.ModelByName("cortex-m")
	if !ok {
		t.Fatal("no model cortex-m")
	}
	var r tableRun
	r.model = map[string]held{}
	r.Rand = rand.New(rand.NewPCG(1, 21))
	lws, blobBytes := 0, 0
	for _, s := range model.Program(7).Stacks(2000) {
		blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &s, nil)
		if err != nil {
			t.Fatal(err)
		}
		lws += len(codec.AppendLine(nil, blob)) + 1
		blobBytes += len(blob)
		frames := slices.Clone(s.PCs)
		for i := range frames {
			frames[i] &^= 1
		}
		slices.Reverse(frames)
		r.counted(&tablePath{frames: frames, key: fmt.Sprint(frames)}, s.Size)
	}
	counts := r.script.String()
	b := build{cc: "arm-linux-gnueabihf-gcc", run: "qemu-arm", cflags: "-Os -mthumb", ldflags: "-static"}
	run := func(nodes, entries, limit int, flags ...int) []pathDump {
		r.script.Reset()
		r.script.WriteString(counts)
		r.want = nil
		for _, f := range flags {
			r.dump(f)
		}
		return r.run(t, b, nodes, entries, 0, limit)
	}
	cut := func(nodes, entries int) uint64 { return run(nodes, entries, 120, 0)[0].end["cut"] }
	nodes, entries := 586, 165
	for ; cut(nodes, 1000) > 0; nodes += 6 {
	}
	for ; cut(nodes, entries) > 0; entries++ {
	}
	memory := 4*nodes + 12*entries
	dumps := run(nodes, entries, 120, 4, 0, 1)
	inline := run(0, 0, 120, 0, 2)
	// byName returns the mean of 16 dumps by name, after a whole one: together they repeat all frames.
	byName := func(sort int) pathDump {
		flags := []int{sort}
		for range 16 {
			flags = append(flags, sort|2)
		}
		all := run(nodes, entries, 120, flags...)
		mean := all[1]
		mean.lines = 0
		for _, d := range all[1:] {
			mean.lines += d.lines
			if len(d.held) != len(mean.held) || d.lines > all[0].lines {
				t.Errorf("a dump by name has %d paths, %d characters; the whole one %d, %d", len(d.held), d.lines, len(all[0].held), all[0].lines)
			}
		}
		mean.lines /= 16
		return mean
	}
	table := "| | bytes or characters |\n| --- | ---: |\n"
	add := func(what string, value any) { table += fmt.Sprintf("| %s | %v |\n", what, value) }
	add("a block: size, number, check", 8)
	add(fmt.Sprintf("table: %d nodes of 4 bytes, %d entries of 12, the least that cuts no path", nodes, entries), memory)
	add("dump as lws writes it, `~m#` lines", lws)
	for _, row := range []struct {
		what       string
		dump       pathDump
		least, top int
	}{
		{"dump, sorted", dumps[0], 3658, 3658}, // what package callpath makes of these paths
		{"dump, as found", dumps[1], 4500, 5300},
		// Names alone take 1840, and 15 of 16 such dumps and a whole one 1953.
		{"dump by name, sorted: mean of 16, which repeat all frames", byName(4), 1900, 1980},
		{"dump by name, as found: mean of 16, which repeat all frames", byName(0), 1900, 2100},
		{"difference when nothing changed", dumps[2], 0, 0},
		{"dump of stacks in front of blocks, added up in 64 slots", inline[0], 5000, 50000},
		{"the same by name; a sixteenth with its frames", inline[1], 1800, 20000},
	} {
		add(row.what, row.dump.lines)
		if len(row.dump.held) != 163 || row.dump.end["cut"] != 0 || row.dump.lines < row.least || row.dump.lines > row.top {
			t.Errorf("%s: %d paths in %d characters, want 163 in %d to %d", row.what, len(row.dump.held), row.dump.lines, row.least, row.top)
		}
	}
	r.script.Reset()
	r.script.WriteString(counts)
	blobs := r.overhead(t, b)
	add("memory in front of a block: blob and list node, aligned to 8", fmt.Sprintf("%.1f", float64(blobs)/2000))
	add("of the former, the blob", fmt.Sprintf("%.1f", float64(blobBytes)/2000))
	figures.Check(t, figuresFile, "profiles", table)
	if memory > 4608 {
		t.Errorf("the table takes %d bytes, want at most 4.5 KB", memory)
	}
}
