package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/types"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// typeSum is the sum of the blocks of a type.
type typeSum struct {
	Type   string `json:"type"` // "" if it is not known
	Bytes  uint64 `json:"bytes"`
	Blocks int    `json:"blocks"`
}

// sumTypes returns the sums of blocks, by type: the most bytes first, blocks without a type last.
func sumTypes(h *core.Heap, names *types.Names, blocks []int) []typeSum {
	at := map[string]int{}
	var list []typeSum
	for _, i := range blocks {
		name := names.At(i)
		k, ok := at[name]
		if !ok {
			k = len(list)
			at[name] = k
			list = append(list, typeSum{Type: name})
		}
		list[k].Bytes, list[k].Blocks = list[k].Bytes+min(h.Blocks[i].Size, ^uint64(0)-list[k].Bytes), list[k].Blocks+1
	}
	last := func(s typeSum) int {
		if s.Type == "" {
			return 1
		}
		return 0
	}
	slices.SortFunc(list, func(a, b typeSum) int {
		return cmp.Or(last(a)-last(b), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Type, b.Type))
	})
	return list
}

// writeTypes prints the blocks by type.
func (o *heapOptions) writeTypes(w io.Writer, in *input, h *core.Heap) error {
	keep := o.keep(in, h)
	var blocks []int
	for i := range h.Blocks {
		if keep == nil || keep(i) {
			blocks = append(blocks, i)
		}
	}
	list := sumTypes(h, in.types(h).names, blocks)
	if o.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(append([]typeSum{}, list...))
	}
	all := 0.0
	for _, s := range list {
		all += float64(s.Bytes)
	}
	line := shares(w, "Bytes", "Type", all)
	for _, s := range list {
		name := cli.Printable(s.Type)
		if name == "" {
			name = "not known"
		}
		line(s.Bytes, s.Blocks, name)
	}
	return nil
}

// maxTypes is the most types printed for a group of leaks.
const maxTypes = 4

// describeTypes returns the types of blocks as text, "" if none is known; names may be nil.
func describeTypes(h *core.Heap, names *types.Names, blocks []int) string {
	if names == nil {
		return ""
	}
	var text []string
	for _, s := range sumTypes(h, names, blocks) {
		if s.Type == "" || len(text) == maxTypes {
			break
		}
		text = append(text, fmt.Sprintf("%s × %s", cli.Number(s.Blocks), cli.Printable(s.Type)))
	}
	return strings.Join(text, ", ")
}
