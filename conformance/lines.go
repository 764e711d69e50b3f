package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/conformance/internal/words"
)

// The lines that a writer of Part III may write, in any form, are compared by what they say.

// pencode is a request to write lines of up to longest characters.
type pencode struct {
	longest int
	*words.PathLine
}

// parsePencode reads max=N and the words of a ~p# line.
func parsePencode(text string) (p pencode, err error) {
	first, rest, _ := strings.Cut(text, " ")
	n, ok := strings.CutPrefix(first, "max=")
	p.longest, err = strconv.Atoi(n)
	if !ok || err != nil || p.longest < 96 || p.longest > callpath.MaxLine {
		return p, fmt.Errorf("%q, expected max=N, 96 to 240", clip(first))
	}
	p.PathLine, err = words.ParsePathLine(rest)
	return p, err
}

// samePaths compares the lines of a writer with the words of the request. Lines may have any form, but
// must be valid and not longer than max=, their sequence must rise by one, and the entries of each path
// must add up to those of the request. why is the first difference, "" if there is none.
func samePaths(asked, text string) (why string) {
	want, err := parsePencode(asked)
	if err != nil {
		return err.Error()
	}
	got := &words.PathLine{Head: want.Head}
	for i, line := range strings.Split(text, "\n") {
		l, err := words.ReadPathLine([]byte(line))
		if err != nil {
			reason, _ := rejection(err)
			return fmt.Sprintf("line %d is rejected: %s", i+1, reason)
		}
		switch seq := uint16(int(want.Seq)+i) % 4096; {
		case len(line) > want.longest:
			return fmt.Sprintf("line %d has %d characters, expected at most %d", i+1, len(line), want.longest)
		case l.Flags != want.Flags || l.Dump != want.Dump || l.Unit != want.Unit:
			return fmt.Sprintf("line %d has flags=%d dump=%d unit=%d", i+1, l.Flags, l.Dump, l.Unit)
		case l.Seq != seq:
			return fmt.Sprintf("line %d has seq=%d, expected %d", i+1, l.Seq, seq)
		}
		got.Entries = append(got.Entries, l.Entries...)
	}
	return differentSums(pathSums(want.PathLine, got), pathSums(got, got))
}

// pathSum is the sum of the entries of a path.
type pathSum struct {
	values  bool // an entry is not a definition
	numbers [5]uint64
	blocks  []callpath.Block
}

// pathSums adds up the entries of l by path. Names of outer parts that known tells are replaced by
// frames.
func pathSums(l, known *words.PathLine) map[string]pathSum {
	var names callpath.Names
	for i := range known.Entries {
		names.Add(&known.Entries[i].Path)
	}
	sums := map[string]pathSum{}
	for i := range l.Entries {
		e := &l.Entries[i]
		p := names.Path(names.Add(&e.Path), nil)
		key := words.Path(p)
		if p.Base == callpath.Named { // the same path, however many of its frames are named
			key = fmt.Sprintf("2:%08x", p.Name())
		}
		s := sums[key]
		s.values = s.values || !e.Definition
		for i, v := range []uint64{e.Live, e.Bytes, e.Allocs, e.AllocBytes, e.Peak} {
			if s.numbers[i] += v; s.numbers[i] < v {
				s.numbers[i] = ^uint64(0) // no sum is more (BT-DUMP-2)
			}
		}
		s.blocks = append(s.blocks, e.Blocks...)
		sums[key] = s
	}
	return sums
}

// differentSums returns what is missing, too much or different in got, "" if nothing is. Definitions
// may be added.
func differentSums(want, got map[string]pathSum) string {
	for key, w := range want {
		g, found := got[key]
		if !found {
			return key + " is missing"
		}
		if w.values != g.values && w.values || w.numbers != g.numbers || !sameBlocks(w.blocks, g.blocks) {
			return fmt.Sprintf("%s has %v %v, expected %v %v", key, g.numbers, g.blocks, w.numbers, w.blocks)
		}
	}
	for key, g := range got {
		if _, found := want[key]; !found && g.values {
			return key + " is too much"
		}
	}
	return ""
}

func sameBlocks(a, b []callpath.Block) bool {
	order := func(x, y callpath.Block) int {
		return strings.Compare(fmt.Sprintf("%016x %016x", x.Address, x.Size), fmt.Sprintf("%016x %016x", y.Address, y.Size))
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, order)
	slices.SortFunc(b, order)
	return slices.Equal(a, b)
}

// sameEvents is like samePaths, for a ~v# line.
func sameEvents(asked, text string) (why string) {
	l, err := words.ReadEventLine([]byte(text))
	if err != nil {
		reason, _ := rejection(err)
		return "the line is rejected: " + reason
	}
	if len(text) > callpath.MaxEvents {
		return fmt.Sprintf("the line has %d characters, expected at most %d", len(text), callpath.MaxEvents)
	}
	want, err := words.ParseEventLine(asked)
	if err != nil {
		return err.Error()
	}
	l.Time, l.Thread, want.Time, want.Thread = 0, 0, 0, 0 // a writer may begin a line with those of its first event
	if got := l.String(); got != want.String() {
		return "it says " + got
	}
	return ""
}
