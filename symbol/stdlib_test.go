package symbol

import (
	"cmp"
	stddwarf "debug/dwarf"
	"debug/elf"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

// stdlibReader does what a File does, as far as debug/dwarf goes: an index of
// units by their ranges, and for each unit that an address needs, its lines and
// its functions with what was inlined into them.
type stdlibReader struct {
	data  *stddwarf.Data
	units []stdlibRange
	lines map[*stddwarf.Entry]*stdlibUnit
}

type stdlibRange struct {
	low, high uint64
	unit      *stddwarf.Entry
}

type stdlibUnit struct {
	rows   []stddwarf.LineEntry
	files  []*stddwarf.LineFile
	scopes []stdlibScope
}

type stdlibScope struct {
	low, high      uint64
	name           string
	depth          int
	inlined        bool
	callFile, line int64
}

func openStdlib(path string) (*stdlibReader, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &stdlibReader{lines: map[*stddwarf.Entry]*stdlibUnit{}}
	if r.data, err = f.DWARF(); err != nil {
		return nil, err
	}
	for rd := r.data.Reader(); ; rd.SkipChildren() {
		e, err := rd.Next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		if e.Tag != stddwarf.TagCompileUnit {
			continue
		}
		ranges, err := r.data.Ranges(e)
		if err != nil {
			return nil, err
		}
		for _, p := range ranges {
			r.units = append(r.units, stdlibRange{p[0], p[1], e})
		}
	}
	slices.SortFunc(r.units, func(a, b stdlibRange) int { return cmp.Compare(a.low, b.low) })
	return r, nil
}

func (r *stdlibReader) unit(e *stddwarf.Entry) (*stdlibUnit, error) {
	if u := r.lines[e]; u != nil {
		return u, nil
	}
	u := &stdlibUnit{}
	r.lines[e] = u
	lr, err := r.data.LineReader(e)
	if err != nil {
		return nil, err
	}
	if lr != nil {
		for {
			var le stddwarf.LineEntry
			if err := lr.Next(&le); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			u.rows = append(u.rows, le)
		}
		slices.SortStableFunc(u.rows, func(a, b stddwarf.LineEntry) int { return cmp.Compare(a.Address, b.Address) })
		u.files = lr.Files()
	}
	rd := r.data.Reader()
	rd.Seek(e.Offset)
	if _, err := rd.Next(); err != nil {
		return nil, err
	}
	for depth := 0; ; {
		d, err := rd.Next()
		if err != nil {
			return nil, err
		}
		if d == nil || d.Tag == stddwarf.TagCompileUnit {
			break
		}
		if d.Tag == 0 {
			if depth--; depth < 0 {
				break
			}
			continue
		}
		if d.Tag == stddwarf.TagSubprogram || d.Tag == stddwarf.TagInlinedSubroutine {
			ranges, err := r.data.Ranges(d)
			if err != nil {
				return nil, err
			}
			s := stdlibScope{depth: depth, inlined: d.Tag == stddwarf.TagInlinedSubroutine, name: r.name(d)}
			s.callFile, _ = d.Val(stddwarf.AttrCallFile).(int64)
			s.line, _ = d.Val(stddwarf.AttrCallLine).(int64)
			for _, p := range ranges {
				s.low, s.high = p[0], p[1]
				u.scopes = append(u.scopes, s)
			}
		}
		if d.Children {
			depth++
		}
	}
	slices.SortStableFunc(u.scopes, func(a, b stdlibScope) int { return cmp.Compare(a.low, b.low) })
	return u, nil
}

func (r *stdlibReader) name(d *stddwarf.Entry) string {
	for range 16 {
		if s, ok := d.Val(stddwarf.AttrLinkageName).(string); ok {
			return s
		}
		at, ok := d.Val(stddwarf.AttrAbstractOrigin).(stddwarf.Offset)
		if !ok {
			if at, ok = d.Val(stddwarf.AttrSpecification).(stddwarf.Offset); !ok {
				break
			}
		}
		rd := r.data.Reader()
		rd.Seek(at)
		next, err := rd.Next()
		if err != nil || next == nil {
			break
		}
		d = next
	}
	s, _ := d.Val(stddwarf.AttrName).(string)
	return s
}

// lookup returns the frames at an address as "function file:line".
func (r *stdlibReader) lookup(pc uint64) (out []string, err error) {
	i := sort.Search(len(r.units), func(i int) bool { return r.units[i].low > pc }) - 1
	if i < 0 || pc >= r.units[i].high {
		return nil, nil
	}
	u, err := r.unit(r.units[i].unit)
	if err != nil {
		return nil, err
	}
	file, line := "", 0
	if i := sort.Search(len(u.rows), func(i int) bool { return u.rows[i].Address > pc }) - 1; i >= 0 && !u.rows[i].EndSequence && u.rows[i].File != nil {
		file, line = u.rows[i].File.Name, u.rows[i].Line
	}
	var around []stdlibScope
	for i := sort.Search(len(u.scopes), func(i int) bool { return u.scopes[i].low > pc }) - 1; i >= 0; i-- {
		if s := u.scopes[i]; pc < s.high {
			if around = append(around, s); !s.inlined {
				break
			}
		}
	}
	slices.SortStableFunc(around, func(a, b stdlibScope) int { return cmp.Compare(b.depth, a.depth) })
	for _, s := range around {
		out = append(out, fmt.Sprintf("%s %s:%d", s.name, file, line))
		if file, line = "", int(s.line); s.callFile >= 0 && int(s.callFile) < len(u.files) && u.files[s.callFile] != nil {
			file = u.files[s.callFile].Name
		}
	}
	return out, nil
}

// measure returns the time that f takes, what it allocates, and what is still in
// use after it.
func measure(f func()) (took time.Duration, allocated, kept int64) {
	var a, b, c runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&a)
	start := time.Now()
	f()
	took = time.Since(start)
	runtime.ReadMemStats(&b)
	runtime.GC()
	runtime.ReadMemStats(&c)
	return took, int64(b.TotalAlloc - a.TotalAlloc), int64(c.HeapAlloc) - int64(a.HeapAlloc)
}

// This package's reader beside debug/dwarf with a simple index, in turns: the
// figures in doc.go. The program is this test itself unless LWSBT_PROGRAM names
// one; where both know an address they must agree.
func TestBesideDebugDwarf(t *testing.T) {
	path := os.Getenv("LWSBT_PROGRAM")
	if path == "" {
		path = buildC(t, strings.Fields("gcc -g -O2"), "prog.c", "other.c")
	}
	f := open(t, path)
	var pcs []uint64
	rng := rand.New(rand.NewPCG(3, 2026))
	for _, s := range f.Functions() {
		for range 4 {
			if s.Size > 0 {
				pcs = append(pcs, s.Addr+rng.Uint64N(s.Size))
			}
		}
	}
	rng.Shuffle(len(pcs), func(i, j int) { pcs[i], pcs[j] = pcs[j], pcs[i] })
	pcs = pcs[:min(len(pcs), 10_000)]
	var ours, theirs [][]string
	for range 3 {
		ours, theirs = ours[:0], theirs[:0]
		took, allocated, kept := measure(func() {
			f, err := Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(f.Close)
			var frames []Frame
			for _, pc := range pcs {
				frames, _ = f.Lookup(frames[:0], pc)
				var s []string
				for _, fr := range frames {
					s = append(s, fmt.Sprintf("%s %s:%d", fr.Func, strings.TrimPrefix(fr.File, "././"), fr.Line))
				}
				ours = append(ours, s)
			}
		})
		t.Logf("symbol: %d addresses in %v, %d MB allocated, %d MB kept", len(pcs), took, allocated>>20, kept>>20)
		var r *stdlibReader
		took, allocated, kept = measure(func() {
			var err error
			if r, err = openStdlib(path); err != nil {
				t.Fatal(err)
			}
			for _, pc := range pcs {
				s, err := r.lookup(pc)
				if err != nil {
					t.Fatal(err)
				}
				theirs = append(theirs, s)
			}
		})
		runtime.KeepAlive(r)
		t.Logf("debug/dwarf: %d addresses in %v, %d MB allocated, %d MB kept", len(pcs), took, allocated>>20, kept>>20)
	}
	same, differ := 0, 0
	for i := range pcs {
		switch {
		case len(theirs[i]) == 0:
		case slices.Equal(ours[i], theirs[i]):
			same++
		default:
			if differ++; differ < 5 {
				t.Logf("%#x: %q, debug/dwarf %q", pcs[i], ours[i], theirs[i])
			}
		}
	}
	t.Logf("%d addresses the same, %d not, %d unknown to debug/dwarf", same, differ, len(pcs)-same-differ)
	if same < len(pcs)*9/10 {
		t.Errorf("only %d of %d addresses are the same", same, len(pcs))
	}
}
