package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cli"
)

func treeCommand() *cobra.Command {
	s := &session{view: profile.View{By: profile.ByFunction}}
	var o profile.TreeOptions
	depth := cli.Natural(0)
	c := &cobra.Command{
		Use: "tree [flags] [FILE...]", Short: "the call tree, with the memory of each call",
		Long:    "tree prints all call paths as a tree that begins at the outermost function, such\nas main, or with --callers at the allocation.",
		Example: "btheap tree -e app.elf device.log\nbtheap tree --callers --depth 3 -e app.elf device.log",
		RunE: func(c *cobra.Command, files []string) error {
			if o.Min < 0 || o.Min > 100 {
				return cli.BadArgsf("--min %g, expected a percentage", o.Min)
			}
			return s.run(c, files, func(w io.Writer) error {
				o.Weight, o.Depth = s.w, int(depth)
				return s.writeTree(w, o)
			})
		},
	}
	f := c.Flags()
	f.Var(&depth, "depth", "show `N` levels of calls, 0 for all")
	f.Float64Var(&o.Min, "min", 0.5, "add up calls that hold less than `PERCENT` of the total")
	f.BoolVar(&o.Callers, "callers", false, "begin at the allocation, and go outward")
	s.addAll(c, "Tree", oneFrames, oneOutput)
	return c
}

// writeTree writes the call tree of a dump.
func (s *session) writeTree(w io.Writer, o profile.TreeOptions) error {
	p, err := s.one()
	if err != nil {
		return err
	}
	root := p.Tree(o)
	fmt.Fprintf(w, "%s: %s bytes in %s\n\n", title(p.Dumps()[0]), cli.Number(root.Total.Bytes), cli.Count(root.Total.Count, "allocation"))
	tb := cli.Table{Head: []string{"Bytes", "%", "Count", "Call path"}, Right: []bool{true, true, true}, Width: s.width()}
	r := treeRows{s.w, s.w.Of(root.Total), o.Min}
	tb.Each = func(yield func([]string) bool) { r.below(root, "", yield) }
	return tb.Write(w)
}

// treeRows makes the rows of a tree.
type treeRows struct {
	w     profile.Weight
	total uint64
	min   float64 // percent
}

// below yields the rows of a node's children and all below them.
func (r *treeRows) below(n *profile.Node, indent string, yield func([]string) bool) bool {
	row := func(v profile.Value, name string) bool {
		return yield([]string{cli.Number(v.Bytes), percent(r.w.Of(v), r.total), cli.Number(v.Count), indent + name})
	}
	for _, c := range n.Children {
		var name strings.Builder
		name.WriteString(c.Site.String())
		for len(c.Children) == 1 && c.Omitted == 0 && c.Children[0].Total == c.Total { // a chain is one line
			c = c.Children[0]
			name.WriteString(" → " + c.Site.String())
		}
		if c.Below > 0 {
			fmt.Fprintf(&name, " (+%s)", cli.Count(c.Below, "call site"))
		}
		if !row(c.Total, name.String()) || !r.below(c, indent+"  ", yield) {
			return false
		}
	}
	return n.Omitted == 0 || row(n.Rest, fmt.Sprintf("(%s below %g %%)", cli.Count(n.Omitted, "call site"), r.min))
}
