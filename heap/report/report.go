package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/printable"
)

//go:embed assets/page.html
var page string

//go:embed assets/report.css
var light string

// dark has the declarations of the dark theme, without a rule around them.
//
//go:embed assets/dark.css
var dark string

// style is the style sheet of the page, whose script chooses the theme.
var style = ":root[data-theme=\"dark\"] {\n" + dark + "}\n" + light

// Style returns the style sheet of the page, for pages that should look like it, in the light theme or, as the
// browser prefers, in the dark one.
func Style() string {
	return light + "@media screen and (prefers-color-scheme: dark) { :root {\n" + dark + "} }\n"
}

//go:embed assets/js
var scripts embed.FS

// parts are the files of the script, in the order of the page. Only the last one uses the
// document when it is loaded.
var parts = []string{"format", "model", "tree", "layout", "color", "state", "element", "flame", "minimap", "table", "timeline", "views", "map", "app"}

// script returns the script of a page.
func script() (string, error) {
	var b strings.Builder
	b.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range parts {
		text, err := scripts.ReadFile("assets/js/" + name + ".js")
		if err != nil {
			return "", err
		}
		b.Write(text)
	}
	b.WriteString("globalThis.page = startPage();\n})();")
	return b.String(), nil
}

// Limits of a page. If a profile has more than MaxPaths call paths, or more than 3,000,000
// changes of a value from one dump to the next, the page adds up the call paths with the
// smallest maxima as one.
const (
	MaxPaths   = 25_000    // call paths
	MaxDumps   = 500       // dumps
	maxChanges = 3_000_000 // values that differ from those in the dump before
)

// SomeDumps selects the dumps for a page: all, or, if there are more than MaxDumps, some
// at even distances, with the first and the last. note names the selection, "" if all.
func SomeDumps(all []*profile.Dump) (some []*profile.Dump, note string) {
	if len(all) <= MaxDumps {
		return all, ""
	}
	return evenly(all), fmt.Sprintf("The page holds %d of %d dumps, evenly from the first to the last.", MaxDumps, len(all))
}

// evenly returns at most MaxDumps elements of a list, at even distances from the first to the
// last.
func evenly[T any](all []T) []T {
	if len(all) <= MaxDumps {
		return all
	}
	some := make([]T, MaxDumps)
	for i := range some {
		some[i] = all[i*(len(all)-1)/(MaxDumps-1)]
	}
	return some
}

// Options are the parts of a page besides the profile.
type Options struct {
	Title      string           // "" for "heap"
	Subtitle   string           // subject of the profile
	Back       string           // URL of a page that this one links to; "" for none
	Notes      []string         // remarks for the reader, such as which lines were lost
	Threads    bool             // the outermost frame of each call path is a thread
	Costs      []Cost           // of call paths, besides live memory
	CostValues *profile.Profile // in the view of the page, with a dump for each of Costs
	Map        *Map             // heap map; nil for no such tab. Of more than MaxDumps moments, the page shows some at even distances
	Leaks      *Leaks           // leaks, the first tab if there are any; nil for no such tab
}

// Cost describes a value of call paths other than live memory, such as memory live at the peak
// or ever allocated.
type Cost struct{ Name, About string }

// Leaks are the ranked leaks of a page.
type Leaks struct {
	Summary []string // result and omissions; the first line is the answer
	Rows    []Leak   // the surest first
	Heaps   []Heap   // what the allocator reported
}

// Leak is a call path that may leak.
type Leak struct {
	Verdict string         `json:"verdict"` // such as "leak, 97 %", "cannot tell" or "none"
	Sure    bool           `json:"sure"`
	Stack   []profile.Site `json:"-"`     // innermost first
	Rate    string         `json:"rate"`  // such as "+69.3 bytes per dump (62.8 to 75.8)"
	Grows   bool           `json:"grows"` // Rate is above 0
	First   profile.Value  `json:"first"`
	Last    profile.Value  `json:"last"`
	Points  []uint64       `json:"points"` // over the dumps that were compared
	Text    string         `json:"text"`   // what else is known
	Picture *Picture       `json:"picture,omitempty"`
	Parts   [][]string     `json:"parts,omitempty"` // of several call paths by one bug: frames and rate of each
}

// Heap is what the allocator reported of a heap.
type Heap struct {
	Name    string   `json:"name"`
	Verdict string   `json:"verdict"`
	Sure    bool     `json:"sure"`
	Lines   []string `json:"lines"`
	Picture *Picture `json:"picture,omitempty"`
}

// Write writes the page of a profile, which has 1 to MaxDumps dumps. The page opens
// on the dump that [growth.Steady] returns, with the reason if it is not the last.
func Write(w io.Writer, p *profile.Profile, o Options) error {
	if n := len(p.Dumps()); n == 0 || n > MaxDumps {
		return fmt.Errorf("report: %d dumps, expected 1 to %d", n, MaxDumps)
	}
	if o.Title == "" {
		o.Title = "heap"
	}
	data, err := json.Marshal(newData(p, &o)) // which escapes <, > and &
	if err != nil {
		return err
	}
	tmpl, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	script, err := script()
	if err != nil {
		return err
	}
	title := template.HTMLEscapeString(printable.Text(o.Title))
	return tmpl.Execute(w, map[string]string{"Title": title, "Back": template.HTMLEscapeString(o.Back), "Data": string(data), "Style": style, "StyleHash": hash(style),
		"Script": script, "ScriptHash": hash(script)})
}

// hash returns the hash source of a text in a Content-Security-Policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
