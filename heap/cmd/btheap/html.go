package main

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/heap/report"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// html is the state of btheap html.
type html struct {
	*session
	title string
	heap  cli.Size // 0 if it is not given
}

func htmlCommand() *cobra.Command {
	h := &html{session: &session{}}
	c := &cobra.Command{
		Use: "html [flags] [FILE...]", Short: "write an HTML page to send to others",
		Long: `html writes one HTML file that needs no network: the leaks, the dumps over time,
a flame graph of each moment and of the difference between two, callers and
callees of each function, and the heap map if the log has addresses of blocks.
For a recording with events, it has 40 to 80 moments, and the memory that was
live at the peak and ever allocated. For a log with only what the allocator
reports, it draws each heap.`,
		Example: "btheap html -e app.elf -o heap.html device.log\nbtheap html -e app.elf --heap 256K -o heap.html device.log",
		RunE: func(c *cobra.Command, files []string) error {
			if h.output == "" && cli.IsTerminal(c.OutOrStdout()) {
				return cli.BadArgsf("the page is not for a terminal: give -o FILE, or a pipe")
			}
			return h.run(c, files, func(w io.Writer) error {
				if h.label == heaplog.ByThread { // the page has the call paths of each thread
					h.label, h.view.By = heaplog.ByThreadPath, profile.ByLine
				}
				err := h.readSeries()
				if errors.Is(err, errOnlyHeaps) {
					return h.writeHeaps(w)
				}
				if err != nil {
					return err
				}
				return h.write(w)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&h.title, "title", "", "`TEXT` is the title of the page")
	f.Var(&h.heap, "heap", "`SIZE` of the heap, such as 256K: shows when it is exhausted")
	h.addAll(c, "Page", oneFrames, []string{"output"}, "heap-line")
	return c
}

// write writes the page.
func (h *html) write(w io.Writer) error {
	h.view.Modules = true
	list, some := report.SomeDumps(h.dumps)
	o := report.Options{Title: h.title, Subtitle: subtitle(h.dumps), Threads: h.label == heaplog.ByThreadPath}
	if some != "" {
		o.Notes = append(o.Notes, some)
		h.note("%s --dump A..B chooses others.", some)
	}
	p, err := h.profile(list...)
	if err != nil {
		return err
	}
	if err := h.costs(&o, list); err != nil {
		return err
	}
	if o.Leaks, err = h.leaks(); err != nil {
		return err
	}
	if o.Map, err = h.heapMap(); err != nil {
		return err
	}
	return report.Write(w, p, o)
}

// costs sets the values of call paths besides live memory.
func (h *html) costs(o *report.Options, list []*profile.Dump) (err error) {
	var values []*profile.Dump
	add := func(name, about string, d *profile.Dump) {
		if !d.Total.IsZero() {
			o.Costs = append(o.Costs, report.Cost{Name: name, About: about})
			values = append(values, d)
		}
	}
	if r := h.replay; r != nil {
		add("peak", "live when the most bytes were live, at "+seconds(r.Totals().PeakTime.Seconds())+" s", r.Peak())
		add("allocated", "ever allocated, freed or not", r.Ever())
	} else {
		steady, _ := growth.Steady(list...)
		peak, ever := profile.NewBuilder(0), profile.NewBuilder(0)
		for a := range list[steady].Allocations() {
			if a.Peak > 0 {
				peak.Add(a.Path, profile.Value{Bytes: a.Peak})
			}
			if !a.Ever.IsZero() {
				ever.Add(a.Path, a.Ever)
			}
		}
		name := list[steady].Name
		add("peak", "the most bytes that each call path held until "+name+"; the sum is an upper bound", peak.End(profile.DumpInfo{Name: "peak"}))
		add("allocated", "allocated from the boot to "+name+", freed or not", ever.End(profile.DumpInfo{Name: "allocated"}))
	}
	if len(values) > 0 {
		o.CostValues, err = newView(h.view, values...)
	}
	return err
}

// leaks returns the leaks as in btheap leaks, or nil if there are too few dumps.
func (h *html) leaks() (*report.Leaks, error) {
	view := h.view
	view.Filter.Suppress = pools
	p, err := newView(view, h.dumps...)
	if err != nil {
		return nil, err
	}
	found := growth.Judge(p, growth.Options{Heap: uint64(h.heap), Heaps: h.heaps()})
	if found.Used == 0 && len(found.Heaps) == 0 {
		return nil, nil
	}
	return report.NewLeaks(found), nil
}

// writeHeaps writes the page of a log that has only what the allocator reports.
func (h *html) writeHeaps(w io.Writer) error {
	found := growth.Judge(nil, growth.Options{Heap: uint64(h.heap), Heaps: h.heaps()})
	return report.WriteHeaps(w, report.NewLeaks(found), h.title, strings.Join(h.files, ", "))
}

// subtitle names the first and the last dump, and their log once if it is the same.
func subtitle(list []*profile.Dump) string {
	first, last := list[0], list[len(list)-1]
	switch {
	case len(list) == 1:
		return title(first)
	case first.File == last.File && first.Name != first.File && last.Name != last.File:
		return title(first) + " to " + last.Name
	}
	return joined(list)
}
