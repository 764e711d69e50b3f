package callpath_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
)

// collision returns two different paths of two frames with the same name.
func collision(t *testing.T) (a, b callpath.Path) {
	first := callpath.Path{Frames: offsets(100)}
	for x := uint64(101); x < 10000; x++ {
		other := callpath.Path{Frames: offsets(x)}
		if y := 200 ^ first.Name() ^ other.Name(); y < callpath.MaxOffset {
			a, b = callpath.Path{Frames: offsets(100, 200)}, callpath.Path{Frames: offsets(x, uint64(y))}
			if a.Name() != b.Name() {
				t.Fatalf("names %#x, %#x", a.Name(), b.Name())
			}
			return a, b
		}
	}
	t.Fatal("no collision")
	return
}

// A name of two paths is ambiguous, whichever was added first. A name that was known becomes
// unknown. (BT-NAME-2)
func TestAmbiguousName(t *testing.T) {
	a, b := collision(t)
	named := callpath.Path{Base: callpath.Named, Outer: a.Name(), Frames: offsets(300)}
	for _, order := range [][]*callpath.Path{{&named, &a, &b}, {&a, &named, &b}, {&b, &a, &named}} {
		var names callpath.Names
		var id callpath.ID
		for _, p := range order {
			if added := names.Add(p); p == &named {
				id = added
			}
			names.Resolve(id)
		}
		if p := names.Path(id, nil); p.Base != callpath.Named || !slices.Equal(p.Frames, offsets(300)) {
			t.Errorf("%v is %v, want its own frame alone", order, p)
		}
		if names.Resolve(names.Add(&a)) == names.Resolve(names.Add(&b)) {
			t.Error("two paths of one name have one ID")
		}
	}
	// Adding the same path twice, or in two forms, is not ambiguous.
	var names callpath.Names
	outer := callpath.Path{Frames: a.Frames[:1]}
	byName := callpath.Path{Base: callpath.Named, Outer: outer.Name(), Frames: a.Frames[1:]}
	id := names.Add(&named)
	names.Add(&byName)
	if p := names.Path(id, nil); p.Base != callpath.Named || !slices.Equal(p.Frames, offsets(200, 300)) {
		t.Errorf("%v, want the frames that are known", p)
	}
	names.Add(&a)
	names.Add(&a)
	if p := names.Path(id, nil); p.Base != callpath.Whole || !slices.Equal(p.Frames, offsets(100, 200, 300)) {
		t.Errorf("%v, want all frames", p)
	}
}

// Names that refer to each other, and paths that names make too deep, stay unknown.
func TestNamesWithoutEnd(t *testing.T) {
	var names callpath.Names
	// The name of this path equals the name of its outer part: mix(mix(b, 5), x) = b.
	b := uint32(0x1234567)
	loop := callpath.Path{Base: callpath.Named, Outer: b, Frames: offsets(5)}
	loop.Frames = offsets(5, unmix(t, b)^uint64(loop.Name()))
	if loop.Name() != b {
		t.Fatalf("name %#x, want %#x", loop.Name(), b)
	}
	id := names.Add(&loop)
	if p := names.Path(id, nil); p.Base != callpath.Named || len(p.Frames) != 2 {
		t.Errorf("%v, want the path as it was told", p)
	}
	deep := callpath.Path{Frames: make([]callpath.Frame, 1000)}
	for i := range deep.Frames {
		deep.Frames[i].Value = uint64(i + 2)
	}
	names.Add(&deep)
	for n, want := range map[int]callpath.Base{24: callpath.Whole, 25: callpath.Named} {
		id := names.Add(&callpath.Path{Base: callpath.Named, Outer: deep.Name(), Frames: deep.Frames[:n]})
		if p := names.Path(id, nil); p.Base != want {
			t.Errorf("%d frames after 1,000: base %d, want %d", n, p.Base, want)
		}
	}
}

// unmix returns h ^ x of mix(h, x) = name.
func unmix(t *testing.T, name uint32) uint64 {
	g := name ^ name>>15
	g = name ^ g>>15 // the inverse of g ^ g>>15 takes three steps for 32 bits
	g = name ^ g>>15
	const factor = 0x9e3779b1
	inverse := uint32(1)
	for range 5 { // Newton's method, mod 2^32
		inverse *= 2 - factor*inverse
	}
	if inverse*factor&0xffffffff != 1 {
		t.Fatal("no inverse")
	}
	return uint64(g * inverse)
}

// Entries that cannot be encoded are refused, and nothing is written. (BT-PREJ-2)
func TestRefused(t *testing.T) {
	long := callpath.Path{Frames: make([]callpath.Frame, 1025)}
	for name, c := range map[string]struct {
		head   callpath.Head
		entry  callpath.Entry
		reason codec.Reason
	}{
		"1,025 frames":      {callpath.Head{}, callpath.Entry{Path: long}, "depth"},
		"an offset of 2^27": {callpath.Head{}, callpath.Entry{Path: callpath.Path{Frames: offsets(1, 1<<27)}}, "frame"},
		"2^64 - 1 blocks":   {callpath.Head{}, callpath.Entry{Live: 1<<64 - 1}, "number"},
		"an address mod 16": {callpath.Head{Flags: callpath.Blocks, Unit: 4}, callpath.Entry{Blocks: []callpath.Block{{Address: 16}, {Address: 24}}}, "unit"},
		"2 live, 1 block":   {callpath.Head{Flags: callpath.Blocks}, callpath.Entry{Live: 2, Blocks: make([]callpath.Block, 1)}, "number"},
		"a unit of 13":      {callpath.Head{Flags: callpath.Blocks, Unit: 13}, callpath.Entry{}, "unit"},
	} {
		got, err := callpath.AppendLine([]byte("before"), c.head, []callpath.Entry{c.entry})
		if e, ok := err.(*codec.Error); !ok || e.Reason != c.reason || string(got) != "before" {
			t.Errorf("%s: %q, %v, want %s", name, got, err, c.reason)
		}
	}
	var w callpath.EventsWriter
	for _, e := range []callpath.Event{{Kind: callpath.Freed}, {Kind: callpath.Moved, Old: 5}} {
		got, err := w.Append([]byte("before"), e)
		if e, ok := err.(*codec.Error); !ok || e.Reason != "age" || string(got) != "before" {
			t.Errorf("%q, %v, want age", got, err)
		}
	}
}

// A number that was raised begins a line. (BT-VLINE-4)
func TestEventsSkipNumbers(t *testing.T) {
	w := callpath.EventsWriter{Limit: 60}
	var text []byte
	for i := range 20 {
		if i == 10 {
			w.Next += 5
		}
		text, _ = w.Append(text, callpath.Event{Kind: callpath.Allocated, Path: uint32(i), Size: 8})
	}
	text = w.Flush(text)
	var l callpath.Events
	var numbers []uint64
	for _, line := range bytes.Fields(text) {
		if err := l.Parse(line); err != nil || len(line) > 60 {
			t.Fatalf("%s: %v", line, err)
		}
		for _, e := range l.List {
			numbers = append(numbers, e.Number)
		}
	}
	want := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}
	if !slices.Equal(numbers, want) {
		t.Errorf("numbers %d, want %d", numbers, want)
	}
}

func TestKeepsNames(t *testing.T) {
	header := func(line string) *codec.Header {
		var h codec.Header
		if err := codec.ParseHeader(&h, []byte("~h#boot"+line)); err != nil {
			t.Fatal(err)
		}
		return &h
	}
	for _, c := range []struct {
		before, after string
		want          bool
	}{
		{" build=aa", " build=aa", true},
		{"", "", false},
		{" build=aa", " build=ab", false},
		{" build=aa", "", false},
		{" build=aa code=10+20 shift=1", " build=aa code=010+20 shift=01", true},
		{" build=aa code=10+20 shift=1", " build=aa code=10+20", false},
		{" build=aa code=10+20 shift=0", " build=aa code=10+20", true},
		{" build=aa code=10+20", " build=aa", false},
		{" build=aa code=10+20", " build=aa code=10+20,40+2", false},
	} {
		if got := callpath.KeepsNames(header(c.before), header(c.after)); got != c.want {
			t.Errorf("%q, %q: %v, want %v", c.before, c.after, got, c.want)
		}
	}
}

func TestLineEnd(t *testing.T) {
	for text, want := range map[string]int{
		"~p#AB+/09 x": 9, "~p#": 3, "~p#=": 3, "~v#AB": 5, "~m#AB": 0, "~p": 0, "": 0, "~p#AB~p#AB": 5, "~p#A_": 4,
	} {
		if got := callpath.LineEnd([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// The estimate and its variance are right on average. A block of s bytes is in the sample
// with probability p. (BT-DUMP-5)
func TestScale(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }
	for _, s := range []float64{1, 100, 4096, 1e7} {
		p := 1 - math.Exp(-s/4096)
		live, bytes, variance := callpath.Scale(3, uint64(3*s), 4096)
		if !near(p*live, 3) || !near(p*bytes, 3*s) || !near(p*variance, 3*s*s*(1-p)/p) && p < 1 {
			t.Errorf("%v bytes: %v %v %v", s, live, bytes, variance)
		}
	}
	for _, c := range [][3]uint64{{5, 80, 0}, {0, 0, 4096}, {3, 0, 4096}} {
		if live, bytes, variance := callpath.Scale(c[0], c[1], c[2]); live != float64(c[0]) || bytes != float64(c[1]) || variance != 0 {
			t.Errorf("%d: %v %v %v", c, live, bytes, variance)
		}
	}
}

// A path that has the name 0 or 1 is not written by its name, which is that of a path of no frames.
// (BT-NAME-4)
func TestWriterNamesNoFramesOnly(t *testing.T) {
	for _, path := range []callpath.Path{
		{Frames: []callpath.Frame{{}}},
		{Base: callpath.Cut, Frames: []callpath.Frame{{Value: 1}}},
		{Frames: make([]callpath.Frame, 20)},
		{Frames: append(make([]callpath.Frame, 3), callpath.Frame{Value: 1 << 40, Escaped: true}, callpath.Frame{Value: 1 << 50, Escaped: true}, callpath.Frame{Value: 1 << 60, Escaped: true}, callpath.Frame{Value: 7})},
	} {
		e := callpath.Entry{Path: path}
		for i := range uint64(60) {
			e.Blocks = append(e.Blocks, callpath.Block{Address: i * i * 977, Size: i})
		}
		for _, whole := range []uint64{0, 8} {
			w := callpath.Writer{Flags: callpath.Blocks, Limit: callpath.MinLimit, Whole: whole}
			lines, err := w.Append(nil, &e)
			if err != nil {
				t.Fatal(err)
			}
			lines = w.Flush(lines)
			var names callpath.Names
			var list []callpath.ID
			var blocks []int
			for line := range bytes.Lines(lines) {
				var l callpath.Line
				if err := l.Parse(bytes.TrimSpace(line)); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				for part := (callpath.Entry{}); l.Next(&part); {
					list, blocks = append(list, names.Add(&part.Path)), append(blocks, len(part.Blocks))
				}
			}
			got := 0
			for i, id := range list {
				p := names.Path(id, nil)
				if p.Base == path.Base && slices.Equal(p.Frames, path.Frames) {
					got += blocks[i]
				}
			}
			if got != len(e.Blocks) {
				t.Errorf("%+v: %d of %d blocks arrive in\n%s", path, got, len(e.Blocks), lines)
			}
		}
	}
}

// A path that no line holds, and that has no name to be cut at, is refused.
func TestWriterRefusesWhatCannotBeCut(t *testing.T) {
	w := callpath.Writer{Limit: callpath.MinLimit}
	e := callpath.Entry{Path: callpath.Path{Frames: make([]callpath.Frame, 50)}, Live: 1}
	lines, err := w.Append(nil, &e)
	var refused *codec.Error
	if !errors.As(err, &refused) || refused.Reason != "hash" || len(lines) > 0 || len(w.Flush(nil)) > 0 {
		t.Errorf("%q, %v", lines, err)
	}
	e.Frames[45].Value = 1
	if _, err = w.Append(nil, &e); !errors.As(err, &refused) {
		t.Errorf("a name after 45 frames: %v", err)
	}
	e.Frames[20].Value = 1
	if _, err = w.Append(nil, &e); err != nil {
		t.Error(err)
	}
}
