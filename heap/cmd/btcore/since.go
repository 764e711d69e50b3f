package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/lwsbt/lwsbt/heap/core/graph"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// jsonHeld is what holds prints as JSON.
type jsonHeld struct {
	Build    string       `json:"build,omitempty"` // build ID of the program
	Bytes    uint64       `json:"bytes"`
	Blocks   int          `json:"blocks"`
	Leaked   uint64       `json:"unreached_bytes"`
	LeakedN  int          `json:"unreached_blocks"`
	Unproven []string     `json:"unproven,omitempty"`
	Omitted  int          `json:"omitted_holders,omitempty"`
	Holders  []jsonHolder `json:"holders"`
}

// build returns the build ID of the program, "" if it is not known.
func (in *input) build() string {
	for f := range in.loaded {
		if file := f.open(); f.own && file != nil {
			return file.BuildID
		}
	}
	return ""
}

// heldSum is what a variable, stack or register held before and holds now, alone or as the nearest of several.
type heldSum struct {
	name          string
	bytes, blocks [2]int64
}

// signed returns a number with its sign.
func signed(v int64) string {
	if v > 0 {
		return "+" + cli.Number(v)
	}
	return cli.Number(v)
}

// since prints what changed in the sums of each holder, the largest change first. name is the file with the JSON of an
// earlier image of the same program.
func (o *holdsOptions) since(w io.Writer, in *input, g *graph.Graph, t *graph.Tree) error {
	text, err := os.ReadFile(o.before)
	if err != nil {
		return err
	}
	var old jsonHeld
	if err := json.Unmarshal(text, &old); err != nil || old.Holders == nil {
		return cli.Usagef("--since %s: expected what btcore holds --json printed: %v", o.before, err)
	}
	if now := in.build(); old.Build != "" && now != "" && old.Build != now {
		return cli.Usagef("--since %s: it is of build %s, this image of %s", o.before, old.Build, now)
	}
	if old.Omitted > 0 {
		return cli.Usagef("--since %s: it lacks %s: write it without -n", o.before, cli.Count(old.Omitted, "holder"))
	}
	at := map[string]*heldSum{}
	var list []*heldSum
	add := func(when int, name string, bytes uint64, blocks int) {
		s := at[name]
		if s == nil {
			s = &heldSum{name: name}
			at[name], list = s, append(list, s)
		}
		s.bytes[when] += int64(min(bytes, 1<<62))
		s.blocks[when] += int64(blocks)
	}
	for _, h := range old.Holders {
		add(0, h.Holder, h.Bytes, h.Blocks)
	}
	for _, h := range t.Holders() {
		add(1, g.Roots[h.Root].Name, h.Bytes, h.Blocks)
	}
	const unreached = "not reached: btcore heap --leaks"
	add(0, unreached, old.Leaked, old.LeakedN)
	bytes, blocks := g.Unreached()
	add(1, unreached, bytes, blocks)
	change := func(v [2]int64) int64 { return v[1] - v[0] }
	slices.SortStableFunc(list, func(a, b *heldSum) int {
		x, y := change(a.bytes), change(b.bytes)
		return cmp.Or(cmp.Compare(max(y, -y), max(x, -x)), cmp.Compare(a.name, b.name))
	})
	row := func(s *heldSum) {
		fmt.Fprintf(w, "%12s  %11s  %11s  %+8d  %s\n", signed(change(s.bytes)), cli.Number(s.bytes[0]), cli.Number(s.bytes[1]), change(s.blocks), cli.Printable(s.name))
	}
	fmt.Fprintf(w, "%12s  %11s  %11s  %8s  %s\n", "Change", "Before", "Now", "Blocks", "Holder, or nearest of several")
	fmt.Fprintln(w, "--------------------------------------------------------------------------")
	sum, same, rows := heldSum{name: "all"}, 0, 0
	for _, s := range list {
		for k := range s.bytes {
			sum.bytes[k], sum.blocks[k] = sum.bytes[k]+s.bytes[k], sum.blocks[k]+s.blocks[k]
		}
		switch {
		case change(s.bytes) == 0 && change(s.blocks) == 0:
			same++
		case o.most == 0 || rows < o.most:
			row(s)
			rows++
		}
	}
	row(&sum)
	fmt.Fprintf(w, "%s without a change", cli.Count(same, "holder"))
	if left := len(list) - same - rows; left > 0 {
		fmt.Fprintf(w, "; %s with a smaller one: -n 0", cli.Number(left))
	}
	fmt.Fprintln(w, ".")
	return nil
}
