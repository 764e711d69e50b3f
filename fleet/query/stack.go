package query

import (
	"context"
	"fmt"
	"strings"
)

// Frame is a frame of a call path.
type Frame struct {
	Address  string `json:"address"`
	Function string `json:"function,omitempty"` // "" if it is not known
	File     string `json:"file,omitempty"`
	Line     int32  `json:"line,omitempty"`
	Missing  string `json:"missing,omitempty"` // reason why there is no function or no line
}

// String returns "function file:line", or the address.
func (f Frame) String() string {
	switch {
	case f.Function == "":
		return f.Address
	case f.File == "":
		return f.Function
	}
	return fmt.Sprintf("%s %s:%d", f.Function, f.File[strings.LastIndexAny(f.File, `/\`)+1:], f.Line)
}

// pathOf identifies a call path of a build.
type pathOf struct {
	build string
	path  int64
}

// stacks sets the frames of n call paths, innermost first: of returns a path, and where its frames belong. An inlined
// function has the address of the function that contains it.
func (s *session) stacks(ctx context.Context, n int, of func(i int) (pathOf, *[]Frame)) error {
	if n == 0 {
		return nil
	}
	paths := make([]int64, n)
	for i := range paths {
		path, _ := of(i)
		paths[i] = path.path
	}
	if err := s.define(ctx, "addresses", text("addresses", "{paths}", numbered(paths))); err != nil {
		return err
	}
	list, err := rows[struct {
		Build    string
		Path     int64
		Address  string
		Function *string
		File     *string
		Line     *int32
		Missing  *string
	}](ctx, s, text("stacks"))
	m := map[pathOf][]Frame{}
	for _, r := range list {
		f := Frame{Address: r.Address}
		if r.Function != nil {
			f.Function, f.File, f.Line, f.Missing = *r.Function, *r.File, *r.Line, *r.Missing
		}
		k := pathOf{r.Build, r.Path}
		m[k] = append(m[k], f)
	}
	for i := range n {
		path, stack := of(i)
		*stack = m[path]
	}
	return err
}
