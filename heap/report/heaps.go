package report

import (
	_ "embed"
	"html"
	"io"
	"strings"
	"text/template"

	"github.com/lwsbt/lwsbt/internal/printable"
)

//go:embed assets/heaps.html
var heapsPage string

// WriteHeaps writes a page on a log that has only what the allocator reported: it has a picture of each heap, and
// no script.
func WriteHeaps(w io.Writer, l *Leaks, title, subtitle string) error {
	type heap struct {
		Class, Verdict, SVG string
		Lines               []string
	}
	escape := func(s string) string { return html.EscapeString(printable.Text(s)) }
	all := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, escape(s))
		}
		return out
	}
	if title == "" {
		title = "heap"
	}
	var heaps []heap
	for _, h := range l.Heaps {
		out := heap{Verdict: escape(h.Verdict), Lines: all(h.Lines)}
		switch {
		case h.Sure:
			out.Class = "leak"
		case strings.HasPrefix(h.Verdict, "leak"):
			out.Class = "likely"
		}
		if h.Picture != nil {
			out.SVG = h.Picture.SVG()
		}
		heaps = append(heaps, out)
	}
	tmpl, err := template.New("heaps").Parse(heapsPage)
	if err != nil {
		return err
	}
	return tmpl.Execute(w, map[string]any{"Title": escape(title), "Subtitle": escape(subtitle), "Summary": all(l.Summary), "Heaps": heaps, "Style": style, "StyleHash": hash(style)})
}
