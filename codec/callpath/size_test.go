package callpath_test

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/corpus"
	"github.com/lwsbt/lwsbt/gen"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// heap is a dump: call paths with live blocks and bytes.
type heap struct {
	name        string
	allocations int
	lws         int // characters of the dump in ~m# lines, with line ends
	entries     []callpath.Entry
}

// captured returns the first 2,000 allocations of a capture.
func captured(t testing.TB, name string) heap {
	var ranges callpath.Ranges
	maps := bufio.NewScanner(bytes.NewReader(corpus.File("captures/" + name + ".maps")))
	for maps.Scan() {
		var start, end uint64
		var flags string
		if _, err := fmt.Sscanf(maps.Text(), "%x-%x %s", &start, &end, &flags); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(flags, "x") {
			ranges.Add(codec.Range{Start: start, Length: end - start}, "")
		}
	}
	h := heap{name: name}
	for _, line := range bytes.SplitAfter(corpus.Capture(name), []byte("\n"))[:2000] {
		h.lws += len(line)
	}
	var stacks []codec.Stack
	for _, a := range corpus.Truth(name)[:2000] {
		stacks = append(stacks, codec.Stack{PCs: a.PCs, Size: a.Size})
	}
	h.add(stacks, &ranges)
	return h
}

// modelled returns allocations of a synthetic program.
func modelled(t testing.TB, model string, n int, code string, shift uint8, seed uint64) heap {
	m, ok := gen.ModelByName(model)
	ranges := callpath.Ranges{Shift: shift}
	code1, ok1 := codec.ParseRanges(code)
	if !ok || !ok1 {
		t.Fatal(model, code)
	}
	for _, r := range code1 {
		ranges.Add(r, "")
	}
	h := heap{name: model}
	stacks := m.Program(seed).Stacks(n)
	for i := range stacks {
		blob, err := codec.Encoder{Machine: m.Machine}.AppendBlob(nil, &stacks[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		h.lws += len(codec.AppendLine(nil, blob)) + 1
		for j, pc := range stacks[i].PCs {
			switch model {
			case "esp32":
				stacks[i].PCs[j] = pc&(1<<30-1) | 1<<30
			case "cortex-m":
				stacks[i].PCs[j] = pc &^ 1
			}
		}
	}
	h.add(stacks, &ranges)
	return h
}

// add adds up stacks by call path, and sorts the paths by their outer frames.
func (h *heap) add(stacks []codec.Stack, ranges *callpath.Ranges) {
	index := map[string]int{}
	for _, s := range stacks {
		key := fmt.Sprint(s.PCs)
		i, ok := index[key]
		if !ok {
			i = len(h.entries)
			index[key] = i
			var e callpath.Entry
			for _, pc := range slices.Backward(s.PCs) {
				e.Frames = append(e.Frames, ranges.Frame(pc))
			}
			h.entries = append(h.entries, e)
		}
		h.entries[i].Live++
		h.entries[i].Bytes += s.Size
	}
	h.allocations = len(stacks)
	slices.SortFunc(h.entries, func(a, b callpath.Entry) int {
		return slices.CompareFunc(a.Frames, b.Frames, func(x, y callpath.Frame) int { return cmp.Compare(x.Value, y.Value) })
	})
}

// text returns the dump as ~p# lines.
func (h *heap) text(t testing.TB, w callpath.Writer) []byte {
	var out []byte
	var err error
	for i := range h.entries {
		if out, err = w.Append(out, &h.entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	return w.Flush(out)
}

// reference is the size that an independent encoder of the same layout produced: characters
// with line ends, in lines of 120, sorted, without names.
type reference struct {
	heap  heap
	chars int
	lines int
}

func references(t testing.TB) []reference {
	cortex := func(n int) heap { return modelled(t, "cortex-m", n, "8000000+60000", 1, 7) }
	riscv := func(n int) heap { return modelled(t, "riscv32", n, "42000000+c8000", 1, 7) }
	return []reference{
		{cortex(300), 848, 8}, {cortex(2000), 3658, 32}, {riscv(300), 742, 7}, {riscv(2000), 4517, 41},
		{captured(t, "i386sql"), 8982, 85}, {captured(t, "cc1"), 15398, 137},
		{captured(t, "perl"), 3366, 32}, {captured(t, "git00"), 15063, 144},
	}
}

// TestSizes measures a table of FIGURES.md.
func TestSizes(t *testing.T) {
	var table strings.Builder
	row := func(format string, args ...any) { fmt.Fprintf(&table, format+"\n", args...) }
	row("| set | allocations | paths | `~m#` lines | `~p#` lines | of it | per path | in hash order | lines of 240 | named | by name |")
	row("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, ref := range references(t) {
		h := ref.heap
		whole := h.text(t, callpath.Writer{Limit: 120})
		named := h.text(t, callpath.Writer{Limit: 120, Whole: 8})
		known := heap{entries: slices.Clone(h.entries)}
		for i, e := range known.entries {
			known.entries[i].Path = callpath.Path{Base: callpath.Named, Outer: e.Name()}
		}
		names := known.text(t, callpath.Writer{Limit: 120})
		long := h.text(t, callpath.Writer{})
		shuffled := heap{entries: slices.Clone(h.entries)}
		slices.SortFunc(shuffled.entries, func(a, b callpath.Entry) int { return cmp.Compare(a.Name(), b.Name()) })
		hashed := shuffled.text(t, callpath.Writer{Limit: 120})
		lines := bytes.Count(whole, []byte("\n"))
		if len(whole) != ref.chars || lines != ref.lines {
			t.Errorf("%s: %d characters in %d lines, want %d in %d", h.name, len(whole), lines, ref.chars, ref.lines)
		}
		per := func(text []byte) float64 { return float64(len(text)) / float64(len(h.entries)) }
		row("| %s | %d | %d | %d | %d | %.1f %% | %.1f | %.1f | %.1f | %.1f | %.1f |", h.name, h.allocations, len(h.entries), h.lws,
			len(whole), 100*float64(len(whole))/float64(h.lws), per(whole), per(hashed), per(long), per(named), per(names))
		for _, text := range [][]byte{whole, named, names} {
			if longest(text) > 120 {
				t.Errorf("%s: a line of %d characters", h.name, longest(text))
			}
		}
		h.equal(t, whole)
		h.equal(t, hashed)
		h.equal(t, named)
	}
	figures.Check(t, "../../FIGURES.md", "sizes", table.String())
}

func longest(text []byte) (n int) {
	for line := range bytes.Lines(text) {
		n = max(n, len(line)-1)
	}
	return n
}

// equal checks that the lines have the paths and values of the heap.
func (h *heap) equal(t *testing.T, text []byte) {
	t.Helper()
	var names callpath.Names
	var line callpath.Line
	sums := map[callpath.ID][2]uint64{}
	add := func(e *callpath.Entry) {
		if id := names.Add(&e.Path); !e.Definition {
			sums[id] = [2]uint64{sums[id][0] + e.Live, sums[id][1] + e.Bytes}
		}
	}
	for row := range bytes.Lines(text) {
		if err := line.Parse(bytes.TrimSuffix(row, []byte("\n"))); err != nil {
			t.Fatal(err)
		}
		for e := (callpath.Entry{}); line.Next(&e); {
			add(&e)
		}
	}
	got := map[string][2]uint64{}
	for id, v := range sums {
		key := fmt.Sprint(names.Path(id, nil))
		got[key] = [2]uint64{got[key][0] + v[0], got[key][1] + v[1]}
	}
	for _, e := range h.entries {
		key := fmt.Sprint(e.Path)
		if got[key] != [2]uint64{e.Live, e.Bytes} {
			t.Errorf("%s: %s holds %d, want %d %d", h.name, key, got[key], e.Live, e.Bytes)
		}
	}
	if len(got) != len(h.entries) {
		t.Errorf("%s: %d paths, want %d", h.name, len(got), len(h.entries))
	}
}
