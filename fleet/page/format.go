package page

import (
	"html/template"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// functions holds the functions of the templates.
var functions = template.FuncMap{
	"damaged": func() string { return "" }, // see New
	"style":   func() string { return style },
	"short":   Short,
	"build":   func(b string) string { return "/build/" + url.PathEscape(b) },
	"device":  func(d string) string { return "/device/" + url.PathEscape(d) },
	"number":  Bytes[int64],
	"mean":    Bytes[float64],
	"signed":  Signed,
	"percent": Percent,
	"share":   Share,
	"rate":    Rate,
	"hours":   Hours,
	"float":   func(n int64) float64 { return float64(n) },
	"half":    func(v float64) float64 { return v / 2 },
	"date":    Date,
	"delta":   func(g query.Growth) float64 { return g.After - g.Before },
	"print":   cli.Printable,
	"name":    name,
	"site":    func(stack []query.Frame) template.HTML { return breakable(Site(stack)) },
	"frame":   func(f query.Frame) template.HTML { return breakable(f.String()) },
	"trend":   trend[float64],
	"ran":     trend[int64],
	"curve":   curve,
	"chart":   chart,
	"count":   func(l []query.Leak, what string) string { return cli.Count(int64(len(l)), what) },
	"near":    func(l []query.Leak) []query.Leak { n, _ := fold(l); return n },
	"changed": func(l []query.Change) []query.Change { return with(l, query.Changed, query.Perhaps) },
	"maybe":   func(l []query.Change) []query.Change { return with(l, query.Possibly) },
	"random":  func(l []query.Change) []query.Change { return with(l, query.NoEvidence) },
	"far":     func(l []query.Leak) []query.Leak { _, f := fold(l); return f },
	"unnamed": func(l []query.Holder) bool {
		return !slices.ContainsFunc(l, func(h query.Holder) bool {
			return slices.ContainsFunc(h.Stack, func(f query.Frame) bool { return f.Function != "" })
		})
	},
	"first": func(n int, list any) any { l := reflect.ValueOf(list); return l.Slice(0, min(n, l.Len())).Interface() },
	"second": func(n int, list any) any {
		l := reflect.ValueOf(list)
		return l.Slice(min(n, l.Len()), l.Len()).Interface()
	},
	"devices": func(n int64) string { return cli.Count(n, "device") },
	"grew": func(l []query.Growth) []query.Growth {
		if i := slices.IndexFunc(l, func(g query.Growth) bool { return g.After <= g.Before }); i >= 0 {
			return l[:i] // sorted by growth
		}
		return l
	},
	"newest": func(n int, l []query.Moment) []query.Moment {
		l = slices.Clone(l[max(0, len(l)-n):])
		slices.Reverse(l)
		return l
	},
}

// hexID matches the build ID of a linker.
var hexID = regexp.MustCompile(`^[0-9a-f]{13,}$`)

// Short returns a build ID, shortened: 12 digits of one of the linker, 40 characters of another.
func Short(build string) string {
	n := 40
	if hexID.MatchString(build) {
		n = 12
	}
	if r := []rune(build); len(r) > n {
		build = string(r[:n])
	}
	return cli.Printable(build)
}

// Bytes formats a number of bytes, rounded. A negative number is not known: "-".
func Bytes[T int64 | float64](n T) string {
	if n < 0 {
		return "-"
	}
	return whole(float64(n))
}

// Signed formats a difference in bytes, rounded.
func Signed(v float64) string { return printable.Signed(math.Round(v)) }

// Rate formats a rate in bytes per hour.
func Rate(v float64) string { return printable.Amount(v) + " bytes per hour" }

// Hours formats a duration in hours. A negative one is not known: "-".
func Hours(h float64) string {
	if h < 0 || math.IsInf(h, 0) || math.IsNaN(h) {
		return "-"
	}
	return printable.Duration(h)
}

// Percent formats a fraction in percent.
func Percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }

// Share returns the share of the devices on which a path grows, in percent.
func Share(l query.Leak) string { return Percent(float64(l.Grew) / float64(l.Examined)) }

// Date formats a time in UTC.
func Date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// year is a year in hours.
const year = 365 * 24

// fold divides the rows of a build. Paths without the word leak or probably that slow down, or that need a year or more to
// exhaust the heap, are of little interest.
func fold(list []query.Leak) (near, far []query.Leak) {
	for _, l := range list {
		if !l.Verdict.Sure() && (l.Slowing || l.Hours == nil || *l.Hours > year) {
			far = append(far, l)
		} else {
			near = append(near, l)
		}
	}
	return near, far
}

// with returns the changes whose evidence has one of these words.
func with(list []query.Change, words ...string) (found []query.Change) {
	for _, c := range list {
		if slices.Contains(words, c.Evidence) {
			found = append(found, c)
		}
	}
	return found
}

// breaks are the ends of the parts of a C++ name or a path, after which a line may be broken.
var breaks = strings.NewReplacer("::", "::<wbr>", "&lt;", "&lt;<wbr>", ",", ",<wbr>", "/", "/<wbr>", "(", "(<wbr>", "_", "_<wbr>")

// breakable returns a name that may be broken into lines between its parts.
func breakable(name string) template.HTML {
	return template.HTML(breaks.Replace(template.HTMLEscapeString(name)))
}

// name returns a name that a device has chosen. A short one stays in a line.
func name(s string) template.HTML {
	class := ""
	if s = cli.Printable(s); len(s) <= 24 {
		class = ` class="nowrap"`
	}
	return template.HTML("<bdi"+class+">") + breakable(s) + "</bdi>"
}

// Site returns the innermost frame that is not an allocator function.
func Site(stack []query.Frame) string {
	i := slices.IndexFunc(stack, func(f query.Frame) bool { return !profile.Allocator(f.Function) })
	if len(stack) == 0 {
		return "no address"
	}
	return cli.Printable(stack[max(0, i)].String())
}
