package page

import (
	"html/template"
	"net/url"
	"slices"
	"time"

	"github.com/lwsbt/lwsbt/internal/cli"
)

// view is the data of a template: the answer to a request. Its links keep the time window.
type view struct {
	Data any
	Old  time.Time // of the answer, if there are newer rows; else zero
	url  *url.URL
}

// head is the beginning of a page.
type head struct {
	*view
	Title string
}

// Head returns the beginning of a page with a title.
func (v *view) Head(title string) head { return head{v, cli.Printable(title)} }

// Since returns the time window, as in the request; "" if there is none.
func (v *view) Since() string { return cli.Printable(v.url.Query().Get("since")) }

// target is one of the pages that each page links to.
type target struct {
	Path, Name string
	Link       template.URL
}

// Pages returns them.
func (v *view) Pages() []target {
	return []target{{"/", "Builds", v.Link("/")}, {"/diff", "Compare", v.Link("/diff")}, {"/devices", "Devices", v.Link("/devices")}}
}

// choice is a time window to choose: the parameter since, and its name.
type choice struct{ Since, Name string }

// Windows returns the time windows to choose from.
func (v *view) Windows() []choice {
	list := []choice{{"", "at any time"}, {"1d", "in the last day"}, {"7d", "in the last 7 days"}, {"30d", "in the last 30 days"}, {"90d", "in the last 90 days"}}
	s := v.Since()
	if !slices.ContainsFunc(list, func(w choice) bool { return w.Since == s }) {
		list = append(list, choice{s, "since " + s})
	}
	return list
}

// Kept returns the parameters of the request that another time window does not change.
func (v *view) Kept() map[string]string {
	m, q := map[string]string{}, v.url.Query()
	for _, name := range []string{"build", "from", "to", "q"} {
		if value := q.Get(name); value != "" && (v.url.Path != "/devices" || name != "from") {
			m[name] = value
		}
	}
	return m
}

// Path returns the path of the request.
func (v *view) Path() string { return v.url.EscapedPath() }

// Link returns the URL of a page, with parameters: names and values in turn.
func (v *view) Link(path string, pairs ...string) template.URL {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	if s := v.Since(); s != "" {
		q.Set("since", s)
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return template.URL(path)
}
